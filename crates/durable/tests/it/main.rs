//! Tests of leases from outside.

mod model;
