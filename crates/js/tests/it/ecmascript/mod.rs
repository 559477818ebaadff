//! The language as its own tests see it: QuickJS-NG's, which come with its sources, and Test262, which
//! `scripts/ecmascript.sh` fetches. Each file is run straight through, and again with the heap stored and brought back between
//! harness and test and after every job, so at every await; where a native build is at hand, it is run there, too.
//! Invariant: the two ways in the guest never differ, and where the guest differs from the native build a list says why.

// why: what passes is counted in the test's own output.
#![allow(clippy::print_stdout)]

pub mod desk;
mod expected;
mod meta;
mod native;
pub mod quickjs;
pub mod suite;
mod test262;
