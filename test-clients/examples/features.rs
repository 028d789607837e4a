//! Does nothing. `make build` builds it, because cargo then gives the dependencies the features that tests need, and
//! `make test` need not compile them again.

fn main() {}
