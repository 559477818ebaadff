//! A JavaScript engine that says what a test told it to.
//! Invariant: outcomes are given in order and once; a step that nobody scripted is an engine failure, never a made-up answer.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use ports::Scripts;
use ports::scripts::{Error, Step, Stepped};

#[derive(Default)]
pub struct ScriptedScripts {
    outcomes: Mutex<VecDeque<Result<Stepped, Error>>>,
    steps: Mutex<Vec<Step>>,
}

impl ScriptedScripts {
    pub fn new() -> Self {
        Self::default()
    }

    /// What the next step that has no outcome yet gives.
    pub fn then(self, outcome: Result<Stepped, Error>) -> Self {
        self.outcomes.lock().unwrap_or_else(PoisonError::into_inner).push_back(outcome);
        self
    }

    /// Every step so far, in order.
    pub fn steps(&self) -> Vec<Step> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl Scripts for ScriptedScripts {
    async fn step(&self, step: Step) -> Result<Stepped, Error> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner).push(step);
        let next = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        next.unwrap_or_else(|| Err(Error::Engine("a step that the test did not script".into())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Digest;
    use ports::scripts::{Input, Outcome};
    use serde_json::json;

    #[tokio::test]
    async fn outcomes_come_in_order_and_then_the_engine_fails() {
        let stepped = Stepped {
            image: vec![1],
            key: Digest::of(&[1]),
            outcome: Outcome::Completed(json!(2)),
            console: Vec::new(),
        };
        let scripts = ScriptedScripts::new().then(Ok(stepped)).then(Err(Error::Deadline(5)));
        let step = || Step {
            image: None,
            input: Input::Evaluate { code: "1 + 1".to_owned() },
            memory_bytes: 1,
            deadline_ms: 5,
        };
        assert!(matches!(scripts.step(step()).await.unwrap().outcome, Outcome::Completed(_)));
        assert!(matches!(scripts.step(step()).await, Err(Error::Deadline(5))));
        assert!(matches!(scripts.step(step()).await, Err(Error::Engine(_))));
        assert_eq!(scripts.steps().len(), 3);
    }
}
