//! WPT.
