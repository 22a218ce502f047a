"""What people see: tables in the terminal, and later pages and plots."""
