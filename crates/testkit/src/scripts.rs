//! A JavaScript engine for tests that runs no code: the test sets the outcome of each step.
//! Invariant: each outcome is used once, in order. A step without an outcome fails as a failure of the engine.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use base::Digest;
use ports::Scripts;
use ports::scripts::{Error, Global, Heap, ObjectHeader, Outcome, Step, Stepped, Thrown};

#[derive(Default)]
pub struct ScriptedScripts {
    /// The outcomes of the next steps, the next one first.
    outcomes: Mutex<VecDeque<Result<Stepped, Error>>>,
    /// The steps so far, in order.
    steps: Mutex<Vec<Step>>,
}

impl ScriptedScripts {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an outcome for the first step that has no outcome yet.
    pub fn then(self, outcome: Result<Stepped, Error>) -> Self {
        self.outcomes.lock().unwrap_or_else(PoisonError::into_inner).push_back(outcome);
        self
    }

    /// Returns every step so far, in order.
    pub fn steps(&self) -> Vec<Step> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Returns the result of a step: this outcome, and a heap whose stored object has these bytes.
pub fn stepped(object: &[u8], outcome: Outcome) -> Stepped {
    let heap = Heap {
        key: Digest::of(object),
        parent: None,
        engine: Digest::of(GUEST),
        object: object.into(),
        memory_bytes: object.len() as u64,
        links: 1,
    };
    Stepped { heap, outcome, console: String::new(), console_dropped: 0 }
}

/// The code of the engine. The digest of these bytes is the id of the engine.
const GUEST: &[u8] = b"a scripted engine";

#[async_trait]
impl Scripts for ScriptedScripts {
    fn engine(&self) -> Digest {
        Digest::of(GUEST)
    }

    fn guest(&self) -> &[u8] {
        GUEST
    }

    fn to_javascript(&self, source: &str) -> Result<String, Thrown> {
        Ok(source.to_owned())
    }

    fn header(&self, object: &[u8]) -> Result<ObjectHeader, Error> {
        Ok(ObjectHeader { key: Digest::of(object), parent: None, memory_bytes: 0 })
    }

    fn is_in_memory(&self, _key: Digest) -> bool {
        false
    }

    async fn admit(&self, key: Digest, objects: Vec<Vec<u8>>) -> Result<(), Error> {
        match objects.last() {
            Some(object) if Digest::of(object) == key => Ok(()),
            _ => Err(Error::Damaged(key)),
        }
    }

    async fn admit_engine(&self, _guest: Vec<u8>) -> Result<Digest, Error> {
        Err(Error::NotAnEngine)
    }

    async fn step(&self, step: Step) -> Result<Stepped, Error> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner).push(step);
        let next = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        next.unwrap_or_else(|| Err(Error::Engine("a step that the test did not script".into())))
    }

    async fn standalone_object(&self, key: Digest) -> Result<Vec<u8>, Error> {
        Err(Error::Absent(key))
    }

    async fn globals(&self, key: Digest) -> Result<Vec<Global>, Error> {
        Err(Error::Absent(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ports::scripts::{Completion, Input, Limits, Stop};
    use serde_json::json;

    #[tokio::test]
    async fn outcomes_come_in_order_and_then_the_engine_fails() {
        let done = stepped(&[1], Outcome::Completed(Completion::Json(json!(2))));
        let scripts = ScriptedScripts::new().then(Ok(done)).then(Err(Error::Deadline(5)));
        let step = || Step {
            heap: None,
            input: Input::Evaluate { code: "1 + 1".to_owned() },
            limits: Limits { memory_bytes: 1, deadline_ms: 5, output_bytes: 1 },
            surroundings: Default::default(),
            stop: Stop::default(),
            turns: None,
        };
        assert!(matches!(scripts.step(step()).await.unwrap().outcome, Outcome::Completed(_)));
        assert!(matches!(scripts.step(step()).await, Err(Error::Deadline(5))));
        assert!(matches!(scripts.step(step()).await, Err(Error::Engine(_))));
        assert_eq!(scripts.steps().len(), 3);
    }
}
