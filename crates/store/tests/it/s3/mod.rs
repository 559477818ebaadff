//! Tests of blobs in S3, against a server of the protocol on loopback (`s3s-fs`) whose answers a test can make wrong.
//! Invariant: no request leaves the loopback interface. Each test has its own server and folders.

mod cached;
mod conforms;
mod faults;
mod removal;
mod server;
