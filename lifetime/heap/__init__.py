"""The heap: who refers to a tensor, in Python and in C++, and which reference is to blame."""
