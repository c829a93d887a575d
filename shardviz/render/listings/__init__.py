"""Programs of any length as pages of lines that are drawn one by one."""
