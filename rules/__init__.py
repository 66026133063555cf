"""The rules, one defect a file. Installed as `lifetime.rules`; found by `lifetime.linter.registry`."""
