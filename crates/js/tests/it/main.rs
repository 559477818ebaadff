//! The engine as its callers see it: steps on heaps, and everything that may go wrong with them.

mod chains;
mod completion;
mod engines;
mod globals;
mod hostile;
mod limits;
mod repl;
mod state;
mod support;
mod waiting;
