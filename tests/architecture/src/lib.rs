//! The rules of `ARCHITECTURE.md`, as tests: they live in `tests/`. This crate exports nothing.
