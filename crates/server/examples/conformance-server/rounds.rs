//! Fixtures that need answers of the client before they end, in one or more rounds of requests.
//! Invariant: a state that was not issued here is refused. A round whose answers are missing is repeated.

use std::collections::{BTreeMap, HashMap};
use std::sync::{LazyLock, Mutex, PoisonError};

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, ErrorData, GetPromptRequestParams, GetPromptResult, InputRequest, InputRequests,
    InputRequiredResult, InputResponses, PromptMessage, Role,
};
use rmcp::service::RequestContext;
use serde::Deserialize;
use serde_json::Value;

use crate::{asks, data};

static PLANS: LazyLock<BTreeMap<String, Plan>> = LazyLock::new(|| data::parse(include_str!("rounds.json")));

#[derive(Deserialize)]
struct Plan {
    /// Whether the client must return the state that the round before issued.
    sealed: bool,
    rounds: Vec<InputRequests>,
}

/// The issued states, each with its tool and round.
#[derive(Default)]
pub struct Rounds(Mutex<HashMap<String, (String, usize)>>);

/// The outcome of one round.
pub enum Round {
    Ask(InputRequiredResult),
    Done(InputResponses),
}

/// The answers and the state that the client sends.
struct ClientInput<'a> {
    answers: Option<&'a InputResponses>,
    state: Option<&'a str>,
}

/// Returns the requests of a tool's first round.
pub fn first_requests_of(name: &str) -> InputRequests {
    PLANS.get(name).and_then(|plan| plan.rounds.first()).cloned().unwrap_or_default()
}

impl Rounds {
    /// Answers the next round of a tool. `None` if the tool needs no answers.
    pub fn of_tool(
        &self,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<Option<Round>, ErrorData> {
        let Some(plan) = PLANS.get(request.name.as_ref()) else { return Ok(None) };
        let input = ClientInput { answers: request.input_responses.as_ref(), state: request.request_state.as_deref() };
        if request.name == "test_input_required_result_capabilities" && input.answers.is_none() {
            let mut asked = plan.rounds.first().cloned().unwrap_or_default();
            let can = asks::capabilities(context).unwrap_or_default();
            asked.retain(|_, request| match request {
                InputRequest::CreateMessage(_) => can.sampling.is_some(),
                InputRequest::Elicitation(_) => can.elicitation.is_some(),
                _ => can.roots.is_some(),
            });
            return Ok(Some(Round::Ask(InputRequiredResult::from_input_requests(asked))));
        }
        self.next(&request.name, plan, &input).map(Some)
    }

    /// Answers the next round of a prompt. `None` if the prompt needs no answers.
    pub fn of_prompt(
        &self,
        request: &GetPromptRequestParams,
    ) -> Result<Option<rmcp::model::GetPromptResponse>, ErrorData> {
        let Some(plan) = PLANS.get(&request.name) else { return Ok(None) };
        let input = ClientInput { answers: request.input_responses.as_ref(), state: request.request_state.as_deref() };
        Ok(Some(match self.next(&request.name, plan, &input)? {
            Round::Ask(asked) => asked.into(),
            Round::Done(answers) => {
                let said = format!("Prompt with {}", Value::from_iter(answers));
                GetPromptResult::new(vec![PromptMessage::new_text(Role::User, said)]).into()
            }
        }))
    }

    fn next(&self, name: &str, plan: &Plan, input: &ClientInput<'_>) -> Result<Round, ErrorData> {
        let at = match input.state.filter(|_| plan.sealed) {
            None => 0,
            Some(state) => self.round_of(name, state)?,
        };
        let started = !plan.sealed || input.state.is_some();
        let answered = input
            .answers
            .filter(|_| started)
            .is_some_and(|given| plan.rounds[at].keys().all(|key| given.get(key).is_some_and(Value::is_object)));
        match input.answers {
            Some(answers) if answered && at + 1 == plan.rounds.len() => Ok(Round::Done(answers.clone())),
            _ => Ok(Round::Ask(self.ask(name, plan, if answered { at + 1 } else { at }))),
        }
    }

    fn ask(&self, name: &str, plan: &Plan, round: usize) -> InputRequiredResult {
        let state = plan.sealed.then(|| {
            let mut issued = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let state = format!("{name}/{}", issued.len());
            issued.insert(state.clone(), (name.to_owned(), round));
            state
        });
        InputRequiredResult::new(plan.rounds.get(round).cloned(), state)
    }

    fn round_of(&self, name: &str, state: &str) -> Result<usize, ErrorData> {
        let issued = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = issued.get(state).filter(|(of, _)| of == name).map(|(_, round)| *round);
        known.ok_or_else(|| ErrorData::invalid_params("this state was not given out here", None))
    }
}
