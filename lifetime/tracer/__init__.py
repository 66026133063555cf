"""Running a program and watching it: steps, sites, ranks, the look itself."""
