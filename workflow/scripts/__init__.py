"""One adapter per rule, with the rule's name: it reads files, calls a package, and writes files."""
