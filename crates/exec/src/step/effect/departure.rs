//! The last check of an effect before its request leaves, after every wait: for a place at the origin, a rate, a token, a retry.
//! Invariant: a request leaves only if its receipt was stored while the run belonged to this process and was not cancelled.

use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use base::Response;
use ports::receipts::{self, EffectIntent, Opened};
use ports::upstream::{Call, DepartureCheck, Error, Refused};
use ports::{Receipts, Upstream};
use tokio_util::sync::CancellationToken;

/// The reason why a request did not leave.
#[derive(Debug)]
pub enum Withheld {
    Cancelled,
    /// Another process owns the run now.
    TakenOver,
    /// The receipt could not be stored.
    Receipts(receipts::Error),
}

impl Withheld {
    /// Returns the reason text that the receipt stores.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Cancelled => "not sent, because the run was cancelled",
            Self::TakenOver => "not sent, because another process took the run over",
            Self::Receipts(_) => "not sent, because its receipt could not be stored",
        }
    }
}

/// The departure of one effect's request. It opens the receipt.
pub struct Departure<'a> {
    receipts: &'a dyn Receipts,
    cancel: &'a CancellationToken,
    intent: &'a EffectIntent,
    progress: Mutex<Progress>,
}

#[derive(Default)]
struct Progress {
    /// Opening the receipt has begun. From then on the send must not be dropped, because a receipt may be stored.
    is_opening: bool,
    is_opened: bool,
    was_uncertain: bool,
    withheld: Option<Withheld>,
}

impl<'a> Departure<'a> {
    pub fn new(receipts: &'a dyn Receipts, cancel: &'a CancellationToken, intent: &'a EffectIntent) -> Self {
        Self { receipts, cancel, intent, progress: Mutex::default() }
    }

    /// Sends the request. If the run is cancelled while the request still waits for its place, this returns at once.
    pub async fn send(&self, upstream: &dyn Upstream, call: Call) -> Result<Response, Error> {
        let label = call.request.label();
        let mut sending = upstream.send_checked(call, self);
        tokio::select! {
            biased;
            answer = &mut sending => return answer,
            () = self.cancel.cancelled() => {}
        }
        if self.progress().is_opening {
            return sending.await;
        }
        self.progress().withheld = Some(Withheld::Cancelled);
        Err(Error::Withheld { label })
    }

    /// Whether the receipt is stored.
    pub fn is_opened(&self) -> bool {
        self.progress().is_opened
    }

    /// Whether a departure before the last one ended without a certain answer. That request may still arrive.
    pub fn was_uncertain(&self) -> bool {
        self.progress().was_uncertain
    }

    /// Returns the reason if the request did not leave.
    pub fn into_withheld(self) -> Option<Withheld> {
        self.progress.into_inner().unwrap_or_else(PoisonError::into_inner).withheld
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl DepartureCheck for Departure<'_> {
    async fn may_leave(&self) -> Result<(), Refused> {
        let withheld = if self.cancel.is_cancelled() {
            Withheld::Cancelled
        } else {
            self.progress().is_opening = true;
            match self.receipts.open(self.intent).await {
                Ok(Opened::Stored) => {
                    self.progress().is_opened = true;
                    return Ok(());
                }
                Ok(Opened::Cancelled) => Withheld::Cancelled,
                Ok(Opened::TakenOver) => Withheld::TakenOver,
                Err(error) => Withheld::Receipts(error),
            }
        };
        self.progress().withheld = Some(withheld);
        Err(Refused)
    }

    fn was_uncertain(&self) {
        self.progress().was_uncertain = true;
    }
}
