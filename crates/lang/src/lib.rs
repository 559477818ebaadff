//! lang
