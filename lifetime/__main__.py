"""`python -m lifetime`."""

from lifetime.cli import main

raise SystemExit(main())
