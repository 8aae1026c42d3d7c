"""The crossing to another process: values, exceptions, and frames on a socket; and the worker at the other end."""
