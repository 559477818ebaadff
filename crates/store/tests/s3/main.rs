//! Blobs in S3, against a real server of the protocol on loopback (`s3s-fs`) behind a layer that fails and lies on request.
//! Invariant: nothing but the loopback is reached; each test has a server and folders of its own.

// why: the functions that the tests share fail the test that calls them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod cached;
mod conforms;
mod faults;
mod removal;
mod server;
