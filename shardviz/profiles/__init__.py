"""What ran on real devices, read from their profiles: its times beside those that were predicted."""
