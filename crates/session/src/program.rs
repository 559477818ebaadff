//! `plasm`: a program to a plan, and nothing leaves the house. Every stage between can be looked at.
//! Invariant: this is the only place where text becomes a plan; `run` calls it too.

use base::{Diagnostic, Limits, Span};
use lang::check::{self, Checked};
use lang::codes;
use lang::plan::{self, Plan};
use lang::scope::Scope;
use lang::syntax::{self, ParseOutput};

use crate::error::Error;
use crate::load::Session;
use crate::service::Service;
use access::Caller;

#[derive(Debug, Clone)]
pub struct PlanRequest {
    /// A slot or a canonical session id.
    pub session: String,
    pub program: String,
}

#[derive(Debug)]
pub struct Planned {
    pub slot: base::Slot,
    /// The moment that `now` means in it.
    pub now: base::Timestamp,
    pub plan: Plan,
    /// What was mended on the way.
    pub notes: Vec<Diagnostic>,
    pub explained: String,
    /// Under which its session keeps it, once it was shown.
    pub number: Option<u64>,
    /// What a run of this very plan is asked for with, where it needs a review.
    pub commit: Option<String>,
}

impl Planned {
    /// Of a plan that was made before.
    pub(crate) fn resumed(slot: base::Slot, plan: Plan) -> Self {
        let explained = plan::explain(&plan);
        Self { slot, now: base::Timestamp(0), plan, notes: Vec::new(), explained, number: None, commit: None }
    }
}

/// One program at every stage; a stage that was not reached is `None` and the diagnostics say why.
#[derive(Debug)]
pub struct Stages {
    pub parsed: ParseOutput,
    pub checked: Option<Checked>,
    pub plan: Option<Plan>,
    pub diagnostics: Vec<Diagnostic>,
}

pub fn stages(scope: &Scope, program: &str, limits: &Limits) -> Stages {
    let parsed = syntax::parse(program, limits);
    let mut diagnostics = parsed.diagnostics.clone();
    if let Some(over) = parsed.program.roots.get(limits.returns) {
        let message = format!("a program has at most {} results", limits.returns);
        diagnostics.push(Diagnostic::error(codes::TOO_MANY_STATEMENTS, over.span, message));
    }
    // A tree with holes in it would only yield mistakes that are not there.
    if diagnostics.iter().any(Diagnostic::is_error) {
        let diagnostics = check::add_corrections(scope, program, limits, first_ones(diagnostics));
        return Stages { parsed, checked: None, plan: None, diagnostics };
    }
    let checked = match check::check(scope, &parsed.program) {
        Ok((checked, notes)) => {
            diagnostics.extend(notes);
            checked
        }
        Err(found) => {
            diagnostics.extend(found);
            let diagnostics = check::add_corrections(scope, program, limits, first_ones(diagnostics));
            return Stages { parsed, checked: None, plan: None, diagnostics };
        }
    };
    if let Some(refusal) = size_mistake(&checked, limits) {
        diagnostics.push(refusal);
        return Stages { parsed, checked: Some(checked), plan: None, diagnostics: first_ones(diagnostics) };
    }
    let plan = plan::plan(&checked, limits);
    Stages { parsed, checked: Some(checked), plan: Some(plan), diagnostics: first_ones(diagnostics) }
}

fn size_mistake(checked: &Checked, limits: &Limits) -> Option<Diagnostic> {
    if checked.returns().is_empty() {
        return Some(Diagnostic::error(
            codes::EMPTY_PROGRAM,
            Span::default(),
            "the program returns nothing; write an expression",
        ));
    }
    if checked.nodes().len() > limits.steps {
        let message = format!("a program has at most {} steps, this one has {}", limits.steps, checked.nodes().len());
        return Some(Diagnostic::error(codes::TOO_MANY_STATEMENTS, Span::default(), message));
    }
    None
}

/// Enough to mend a program by; thousands of lines would help nobody.
const SHOWN: usize = 20;

fn first_ones(mut diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let more = diagnostics.len().saturating_sub(SHOWN);
    if more > 0 {
        diagnostics.sort_by_key(|d| (!d.is_error(), d.span.start));
        diagnostics.truncate(SHOWN);
        let end = diagnostics.iter().map(|d| d.span.end).max().unwrap_or_default() as usize;
        let last = Span::new(end, end);
        diagnostics.push(Diagnostic::note(codes::MORE_MISTAKES, last, format!("and {more} more, after these")));
    }
    diagnostics
}

impl Service {
    pub async fn plan(&self, caller: &Caller, request: &PlanRequest) -> Result<Planned, Error> {
        let session = self.session(caller, &request.session).await?;
        let mut planned = self.plan_in(&session, &request.program, self.now())?;
        self.keep_plan(caller, &session, (&mut planned, &request.program)).await?;
        Ok(planned)
    }

    pub(crate) fn plan_in(&self, session: &Session, program: &str, now: base::Timestamp) -> Result<Planned, Error> {
        let mut scope = session.execute.ledger.scope(&session.catalogs);
        (scope.now, scope.slot) = (Some(now), Some(session.slot));
        scope.registry = Some(session.offered.clone());
        let stages = stages(&scope, program, &self.limits);
        let Some(plan) = stages.plan else {
            // A program over its limit is not kept to be shown back.
            let text: String = program.chars().take(self.limits.program_bytes).collect();
            return Err(Error::Program { text, diagnostics: stages.diagnostics });
        };
        tracing::debug!(plan = plan.digest.short(), steps = plan.steps.len(), "planned");
        let explained = plan::explain(&plan);
        Ok(Planned { slot: session.slot, now, plan, notes: stages.diagnostics, explained, number: None, commit: None })
    }
}
