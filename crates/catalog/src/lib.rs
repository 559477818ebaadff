//! What an API offers (entities, relations, capabilities) and how each capability travels: the model, its strict YAML
//! reader, binding a call to a request, and decoding rows from an answer.
//!
//! Invariants:
//! - No I/O, no async; no input makes it panic.
//! - A [`Catalog`] that exists is valid and immutable, and is named by the digest of its canonical form.
//! - A value can never become syntax: templates are parsed once into literals and holes, and each hole encodes its value.

mod allow;
mod bind;
mod canonical;
pub mod codes;
mod decode;
mod model;
mod paging;
mod path;
mod read;
mod registry;
mod template;
mod types;

pub use allow::Allow;
pub use bind::{Args, Ask, BindError, bind};
pub use canonical::{PinError, from_canonical};
pub use decode::{Answer, Asked, DecodeError, Decoded, Refusal, Window, decode};
pub use model::{
    Body, Capability, Catalog, Document, DocumentPiece, Effect, EffectClass, Entity, Failure, Field, Graphql, Http,
    Idempotency, Kind, ListStyle, Param, Part, Probe, Relation, Role, Row, RowForm, Rows, Shape, Show, Source,
    Transport, Via,
};
pub use paging::{After, PageAt, PageRequest, PageSize, Paging, PagingError, PagingForm, Place};
pub use path::DataPath;
pub use read::{Rejected, is_reserved_header, raw, read, schema};
pub use registry::{
    Cause, Change, FileFound, FolderFound, Problem, Registry, RegistryError, Report, Shelf, Unlisted, Unusable,
};
pub use template::{Hole, Piece, Template, TemplateError};
pub use types::{DateFormat, Slot, TextStyle, Type, TypeError, Union, Wire};
