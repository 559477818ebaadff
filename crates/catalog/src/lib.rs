//! Catalogs, the descriptions of APIs as data: the model, the strict YAML reader, binding (making a request from a
//! call) and decoding (making rows from an answer).
//!
//! Invariants:
//! - This crate does no I/O and has no async code. No input makes its functions panic.
//! - Each [`Catalog`] is valid and immutable, and is named by the digest of its canonical form.
//! - A value never becomes syntax. A template is parsed once into literals and holes (places for values, written
//!   `{name}`), and each hole encodes its value.

mod bind;
mod canonical;
pub mod codes;
mod decode;
mod model;
mod paging;
mod path;
mod permissions;
mod read;
mod registry;
mod template;
mod types;

pub use bind::{Args, BindError, BindInput, bind};
pub use canonical::{PinError, from_canonical};
pub use decode::{ApiRefusal, DecodeError, DecodeInput, Decoded, RequestedPage, RowWindow, decode};
pub use model::{
    Body, Capability, Catalog, Document, DocumentPiece, EffectClass, EffectProperties, Entity, Failure, Field,
    FieldSource, Graphql, Http, Idempotency, Kind, ListStyle, MultipartPart, Param, Probe, Relation, Role, Row,
    RowForm, Rows, Show, Transport, ValueTemplate, Via,
};
pub use paging::{
    NextPage, PageAddress, PageParamLocation, PagePosition, PageRequest, PageSize, Paging, PagingError, PagingForm,
    resolve_link,
};
pub use path::DataPath;
pub use permissions::Permissions;
pub use read::{Rejected, is_reserved_header, raw, read, schema};
pub use registry::{
    CatalogChange, CatalogProblem, CatalogSet, FileError, FileScan, FolderError, FolderScan, ProblemCause, Registry,
    RegistryError, ReloadReport,
};
pub use template::{Hole, Template, TemplateError, TemplatePiece};
pub use types::{DateFormat, ObjectSlot, TextStyle, Type, TypeError, Union, Wire};
