//! The errors of calls. Each variant says who can act.
//! Invariant: `code` is stable and callers branch on it or on the variant; the words may change.

mod js;

use std::sync::Arc;

use base::{Diagnostic, Digest, Slot};
use ports::receipts::Receipt;

pub use js::JsError;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("`intent` must say in a few words what the session is for; keep it the same for the whole task")]
    NoIntent,
    #[error("`intent` has at most {max} bytes, this one has {found}")]
    IntentTooLong { max: usize, found: usize },
    #[error(
        "`seeds` must name at least one {{api, entity}}; copy them from discovery or from `tokamak catalog` files: {known}"
    )]
    NoSeeds { known: String },
    #[error("at most {max} seeds in one call, this one has {found}")]
    TooManySeeds { max: usize, found: usize },
    #[error(transparent)]
    Seed(#[from] teach::SeedError),
    #[error("`{0}` is neither a slot (`s0`) nor a session id; call plasm_context and use the ref it answers")]
    BadRef(String),
    #[error("slot {slot} is not known on this connection; call plasm_context with the same intent to get it back")]
    UnknownSlot { slot: Slot },
    #[error("no session {0}; call plasm_context to open one")]
    NoSession(String),
    #[error("session {0} has expired; call plasm_context with the same intent to open it again")]
    Expired(String),
    #[error("`limit` is from 1 to {most}; leave it out for a few rows")]
    NoRows { most: usize },
    #[error("no execute session {0}; POST /execute opens one")]
    NoExecute(String),
    #[error("this execute session was replaced; POST /execute with the same intent answers the one there is now")]
    Replaced,
    #[error("`logical_session_id` names a session of another intent; leave `intent` out")]
    OtherIntent,
    /// The program has mistakes; all of them are reported at once.
    #[error("the program has mistakes")]
    Program { text: String, diagnostics: Vec<Diagnostic> },
    /// The plan needs a review before it runs.
    #[error("this plan needs a review before it runs")]
    Review { explained: String, commit: String },
    #[error("`program` is missing; send it, or the `plan_commit_ref` of a dry run")]
    NoProgram,
    #[error("no plan commit `{0}` in this session; plan the program again with plasm")]
    NoCommit(String),
    #[error("`{0}` is older than ten minutes and was not used; plan the program again with plasm")]
    CommitExpired(String),
    #[error("`{0}` was given for another program; send that one, or plan this one with plasm")]
    OtherPlan(String),
    #[error("`request_id` has between 1 and {max} bytes")]
    BadRequestId { max: usize },
    #[error("no `{0}` in this session; copy the handle from the answer that gave it")]
    NoHandle(String),
    #[error("`{handle}` is not of this session; here it would be `{right}`")]
    ForeignHandle { handle: String, right: String },
    /// The run ended, but its result could not be stored. The receipts are known only here.
    #[error("the run ended and its result could not be kept ({cause}); what it did:")]
    NotKept { receipts: Vec<Receipt>, cause: Box<Error> },
    /// This process was silent for a whole lease, so another one took the run over.
    #[error("another process has taken this run over; {}", match .0 {
        Some(handle) => format!("ask it with wait({handle})"),
        None => "its result and its receipts are stored as the next run of this session".to_owned(),
    })]
    TakenOver(Option<String>),
    /// The task of the run ended without a result: a defect of ours.
    #[error("the run ended without a result; its receipts are kept")]
    Lost,
    /// The same failure, reported to every caller that waited for the run.
    #[error(transparent)]
    Shared(Arc<Error>),
    #[error(
        "`{0}` is neither a result nor a plan of this session; use a URI that an answer named: plasm://session/s0/r/1"
    )]
    NoArtifact(String),
    #[error("`{what}` is gone: it was kept for {days} days; run its program again")]
    Gone { what: String, days: u32 },
    #[error("session {session} cannot be read ({cause}); call plasm_context with the same intent to open it again")]
    DamagedSession { session: String, cause: Box<Error> },
    #[error(
        "artifact {0} is not readable any more, because its stored bytes are damaged or gone; run the program again"
    )]
    LostArtifact(Digest),
    #[error("too many calls change this session at once; try again")]
    Busy,
    #[error(
        "this connection has {most} sessions, which is the most; open a new connection, or send `initialize` again"
    )]
    TooManySlots { most: usize },
    #[error(
        "{what} {most} runs that go on without a waiting caller; ask for one with wait(…), stop one with cancel(…), or leave out \
         `wait: false`"
    )]
    TooManyDetached { what: &'static str, most: usize },
    #[error("the storage did not take a row within {seconds} s; check its disk")]
    TooSlow { seconds: u64 },
    #[error(transparent)]
    Js(#[from] JsError),
    #[error(transparent)]
    Store(#[from] ports::store::Error),
    #[error(transparent)]
    Blobs(#[from] ports::blobs::Error),
    #[error(transparent)]
    Pin(#[from] catalog::PinError),
    /// A stored row that cannot be parsed.
    #[error("stored row {0} is damaged")]
    Damaged(String),
}

impl From<access::Error> for Error {
    fn from(error: access::Error) -> Self {
        match error {
            access::Error::Store(error) => Error::Store(error),
            access::Error::Damaged(row) => Error::Damaged(row),
        }
    }
}

impl Error {
    /// Returns the stable code that clients branch on.
    pub fn code(&self) -> &'static str {
        match self {
            Error::NoIntent | Error::IntentTooLong { .. } => "bad_intent",
            Error::NoSeeds { .. } | Error::TooManySeeds { .. } => "bad_seeds",
            Error::Seed(_) => "unknown_seed",
            Error::BadRef(_) => "bad_ref",
            Error::UnknownSlot { .. } => "unknown_slot",
            Error::NoSession(_) | Error::NoExecute(_) => "no_session",
            Error::Expired(_) | Error::Replaced => "expired_session",
            Error::OtherIntent => "bad_intent",
            Error::Program { .. } => "bad_program",
            Error::Review { .. } => "review_needed",
            Error::NoProgram | Error::NoRows { .. } | Error::BadRequestId { .. } => "bad_arguments",
            Error::NoCommit(_) => "no_commit",
            Error::CommitExpired(_) => "expired_commit",
            Error::OtherPlan(_) => "other_plan",
            Error::NoHandle(_) => "no_handle",
            Error::ForeignHandle { .. } => "foreign_handle",
            Error::NotKept { cause, .. } => cause.code(),
            Error::TakenOver(_) => "taken_over",
            Error::Lost => "internal",
            Error::Shared(error) => error.code(),
            Error::NoArtifact(_) => "no_artifact",
            Error::Gone { .. } => "expired_handle",
            Error::DamagedSession { .. } => "storage_damaged",
            Error::LostArtifact(_) => "lost_artifact",
            Error::Busy => "busy",
            Error::TooManySlots { .. } => "too_many_sessions",
            Error::TooManyDetached { .. } => "too_many_runs",
            Error::Js(error) => error.code(),
            Error::Store(ports::store::Error::Full(_)) | Error::Blobs(ports::blobs::Error::Full(_)) => "storage_full",
            Error::Store(ports::store::Error::Damaged { .. }) => "storage_damaged",
            Error::Blobs(ports::blobs::Error::Damaged(_) | ports::blobs::Error::Missing(_)) => "storage_damaged",
            Error::Blobs(ports::blobs::Error::Remote(remote)) => remote.problem.code(),
            Error::Store(_) | Error::Blobs(_) | Error::TooSlow { .. } => "storage_unavailable",
            Error::Pin(_) | Error::Damaged(_) => "storage_damaged",
        }
    }

    /// Returns whether the requested thing does not exist.
    pub fn is_missing(&self) -> bool {
        match self {
            Error::Js(error) => error.is_missing(),
            Error::Shared(error) => error.is_missing(),
            Error::NotKept { cause, .. } => cause.is_missing(),
            Error::NoSession(_)
            | Error::NoExecute(_)
            | Error::UnknownSlot { .. }
            | Error::Seed(_)
            | Error::NoArtifact(_)
            | Error::NoHandle(_)
            | Error::NoCommit(_)
            | Error::Expired(_)
            | Error::Replaced
            | Error::CommitExpired(_)
            | Error::Gone { .. } => true,
            _ => false,
        }
    }

    /// Returns whether the request itself is wrong, so that repeating it fails again.
    pub fn is_usage(&self) -> bool {
        match self {
            Error::Js(error) => error.is_usage(),
            Error::Shared(error) => error.is_usage(),
            Error::NotKept { cause, .. } => cause.is_usage(),
            Error::NoIntent
            | Error::IntentTooLong { .. }
            | Error::OtherIntent
            | Error::NoSeeds { .. }
            | Error::TooManySeeds { .. }
            | Error::BadRef(_)
            | Error::Program { .. }
            | Error::NoProgram
            | Error::NoRows { .. }
            | Error::BadRequestId { .. } => true,
            _ => false,
        }
    }

    /// Returns whether stored data is missing or damaged, while the storage itself works.
    pub(crate) fn is_damage(&self) -> bool {
        self.code() == "storage_damaged"
    }

    /// Returns whether the fault is of the server or its storage: logged in full, shown as one line.
    pub fn is_fault(&self) -> bool {
        if let Error::Shared(error) = self {
            return error.is_fault();
        }
        if let Error::Js(error) = self {
            return error.is_fault();
        }
        matches!(
            self,
            Error::Lost
                | Error::TooSlow { .. }
                | Error::NotKept { .. }
                | Error::Store(_)
                | Error::Blobs(_)
                | Error::Pin(_)
                | Error::Damaged(_)
                | Error::DamagedSession { .. }
                | Error::LostArtifact(_)
        )
    }
}
