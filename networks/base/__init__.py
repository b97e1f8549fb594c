"""What networks share: the class that each derives from, devices, and features of many images."""
