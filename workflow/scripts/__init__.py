"""One adapter per rule, of the rule's name: it reads files, calls a room, and writes files."""
