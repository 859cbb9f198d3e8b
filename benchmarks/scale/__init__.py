"""What people and sensors wait for, in graphs of growing size."""
