//! `plasm`: compiles a program to a plan without any effect. The result of every stage can be inspected.
//! Invariant: this is the only place where text becomes a plan; `run` uses it too.

use access::Caller;
use base::{Diagnostic, Limits, Span};
use lang::check::{self, Checked};
use lang::codes;
use lang::plan::{self, Plan};
use lang::scope::Scope;
use lang::syntax::{self, ParseOutput};

use crate::error::Error;
use crate::load::Session;
use crate::service::Service;

/// A program to plan.
#[derive(Debug, Clone)]
pub struct PlanRequest {
    /// A slot or a canonical session id.
    pub session: String,
    pub program: String,
}

/// A program with its plan.
#[derive(Debug)]
pub struct PlannedProgram {
    /// The caller's slot for the session.
    pub slot: base::Slot,
    /// The time that `now` means in the program.
    pub now: base::Timestamp,
    pub plan: Plan,
    /// Corrections that were made while compiling.
    pub notes: Vec<Diagnostic>,
    /// The plan as text, as the model reads it.
    pub explained: String,
    /// The number under which the session stores the plan, once it was shown.
    pub number: Option<u64>,
    /// The plan commit with which exactly this plan can be run, if it needs a review.
    pub commit: Option<String>,
}

impl PlannedProgram {
    /// Wraps the plan of a run that is resumed.
    pub(crate) fn resumed(slot: base::Slot, plan: Plan) -> Self {
        let explained = plan::explain(&plan);
        Self { slot, now: base::Timestamp(0), plan, notes: Vec::new(), explained, number: None, commit: None }
    }
}

/// One program at every stage. A stage that was not reached is `None`, and the diagnostics say why.
#[derive(Debug)]
pub struct CompilerStages {
    /// The tree, which exists for every text.
    pub parsed: ParseOutput,
    pub checked: Option<Checked>,
    pub plan: Option<Plan>,
    /// Mistakes and corrections of all stages, at most `MAX_DIAGNOSTICS` and one that counts the others.
    pub diagnostics: Vec<Diagnostic>,
}

/// Compiles a program and keeps the result of every stage.
pub fn compile_stages(scope: &Scope, program: &str, limits: &Limits) -> CompilerStages {
    let parsed = syntax::parse(program, limits);
    let mut diagnostics = parsed.diagnostics.clone();
    if let Some(excess) = parsed.program.roots.get(limits.returns) {
        let message = format!("a program has at most {} results", limits.returns);
        diagnostics.push(Diagnostic::error(codes::TOO_MANY_STATEMENTS, excess.span, message));
    }
    // Checking an incomplete tree would report mistakes that the program does not have.
    if diagnostics.iter().any(Diagnostic::is_error) {
        let diagnostics = check::add_corrections(scope, program, limits, limit_diagnostics(diagnostics));
        return CompilerStages { parsed, checked: None, plan: None, diagnostics };
    }
    let checked = match check::check(scope, &parsed.program) {
        Ok((checked, notes)) => {
            diagnostics.extend(notes);
            checked
        }
        Err(mistakes) => {
            diagnostics.extend(mistakes);
            let diagnostics = check::add_corrections(scope, program, limits, limit_diagnostics(diagnostics));
            return CompilerStages { parsed, checked: None, plan: None, diagnostics };
        }
    };
    if let Some(refusal) = check_size(&checked, limits) {
        diagnostics.push(refusal);
        return CompilerStages {
            parsed,
            checked: Some(checked),
            plan: None,
            diagnostics: limit_diagnostics(diagnostics),
        };
    }
    let plan = plan::plan(&checked, limits);
    CompilerStages { parsed, checked: Some(checked), plan: Some(plan), diagnostics: limit_diagnostics(diagnostics) }
}

/// Returns the diagnostic for a program without returns or with too many steps.
fn check_size(checked: &Checked, limits: &Limits) -> Option<Diagnostic> {
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

/// The most diagnostics in an answer, which is enough to correct a program.
const MAX_DIAGNOSTICS: usize = 20;

/// Keeps the first diagnostics, mistakes before notes, and counts the others in a note.
fn limit_diagnostics(mut diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let more = diagnostics.len().saturating_sub(MAX_DIAGNOSTICS);
    if more > 0 {
        diagnostics.sort_by_key(|diagnostic| (!diagnostic.is_error(), diagnostic.span.start));
        diagnostics.truncate(MAX_DIAGNOSTICS);
        let end = diagnostics.iter().map(|diagnostic| diagnostic.span.end).max().unwrap_or_default() as usize;
        // The note belongs to no position of its own, so it stands behind the last kept one.
        let after_all = Span::new(end, end);
        diagnostics.push(Diagnostic::note(codes::MORE_MISTAKES, after_all, format!("and {more} more, after these")));
    }
    diagnostics
}

impl Service {
    /// Plans a program and stores the plan that its caller is shown.
    pub async fn plan(&self, caller: &Caller, request: &PlanRequest) -> Result<PlannedProgram, Error> {
        let session = self.session(caller, &request.session).await?;
        let mut planned = self.plan_in(&session, &request.program, self.now())?;
        self.store_plan(caller, &session, &mut planned, &request.program).await?;
        Ok(planned)
    }

    /// Plans a program in a session, with `now` as its time.
    pub(crate) fn plan_in(
        &self,
        session: &Session,
        program: &str,
        now: base::Timestamp,
    ) -> Result<PlannedProgram, Error> {
        let mut scope = session.execute.ledger.scope(&session.catalogs);
        scope.now = Some(now);
        scope.session_slot = Some(session.slot);
        // Lets a diagnostic name an API that could be taught.
        scope.registry = Some(session.offered.clone());
        let stages = compile_stages(&scope, program, &self.limits);
        let Some(plan) = stages.plan else {
            // A program over its size limit is not repeated in full.
            let text: String = program.chars().take(self.limits.program_bytes).collect();
            return Err(Error::Program { text, diagnostics: stages.diagnostics });
        };
        tracing::debug!(plan = plan.digest.short(), steps = plan.steps.len(), "planned a program");
        let explained = plan::explain(&plan);
        Ok(PlannedProgram {
            slot: session.slot,
            now,
            plan,
            notes: stages.diagnostics,
            explained,
            number: None,
            commit: None,
        })
    }
}
