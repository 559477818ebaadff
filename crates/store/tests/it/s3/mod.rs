//! Blobs in S3, against a real server of the protocol on loopback (`s3s-fs`) behind a layer that fails and lies on request.
//! Invariant: nothing but the loopback is reached; each test has a server and folders of its own.

mod cached;
mod conforms;
mod faults;
mod removal;
mod server;
