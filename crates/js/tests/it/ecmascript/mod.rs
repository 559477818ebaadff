//! Conformance tests of the language: those of QuickJS-NG, which come with its sources, and Test262, which
//! `scripts/ecmascript.sh` fetches. Each file runs without interruption, and again with the heap stored and loaded
//! between harness and test and after every job, so at every await. If there is a native build of QuickJS-NG, the file
//! runs there, too.
//! Invariant: both ways in the guest have the same result. A list explains every difference between the guest and the
//! native build.

// why: the tests print how many files pass.
#![allow(clippy::print_stdout)]

pub mod case_runner;
mod front_matter;
mod known_failures;
mod native;
pub mod quickjs;
pub mod suite;
mod test262;
