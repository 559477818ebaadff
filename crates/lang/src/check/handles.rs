//! Checks `page(…)`, `wait(…)` and `cancel(…)`, which use the handle of an earlier run.
//! Invariant: a handle begins with the slot of its session, so it names the same run in every conversation.

use base::{Diagnostic, Edit};

use super::{Checker, NodeId, RowType};
use crate::codes;
use crate::ir::StepKind;
use crate::syntax::tree::{HandleCall, HandleCallKind};

impl Checker<'_> {
    /// Checks a use of a handle. The columns of its rows stay unknown until the run.
    pub(super) fn check_handle_call(&mut self, call: &HandleCall) -> Option<NodeId> {
        if !self.effects_allowed() {
            self.report_error(
                codes::EFFECT_AS_VALUE,
                call.span,
                "what an earlier run left is no value; name it on a line before",
            );
            return None;
        }
        let handle = self.check_handle(call)?;
        let rows = RowType { has_unknown_columns: true, ..RowType::computed_rows(Vec::new(), true) };
        Some(match call.kind {
            HandleCallKind::Page => {
                let limit = match &call.limit {
                    Some(limit) => Some(self.check_count(limit)?),
                    None => None,
                };
                self.add_node(StepKind::Page { handle, limit }, rows)
            }
            HandleCallKind::Wait => self.add_node(StepKind::Operation { handle, cancel: false }, rows),
            HandleCallKind::Cancel => self.add_node(StepKind::Operation { handle, cancel: true }, rows),
        })
    }

    /// Checks that a handle has the form `s0_pg1`: the slot, then `pg` or `o`, then a number.
    fn check_handle(&mut self, call: &HandleCall) -> Option<String> {
        let written = &call.handle.text;
        let (word, letters) = match call.kind {
            HandleCallKind::Page => ("page", "pg"),
            HandleCallKind::Wait => ("wait", "o"),
            HandleCallKind::Cancel => ("cancel", "o"),
        };
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let numbered = |text: &str| text.strip_prefix(letters).is_some_and(digits);
        let is_handle = written
            .split_once('_')
            .is_some_and(|(slot, rest)| slot.strip_prefix('s').is_some_and(digits) && numbered(rest));
        if is_handle {
            return Some(written.to_string());
        }
        let slot = self.scope.session_slot.map_or_else(|| "s0".to_owned(), |slot| slot.to_string());
        let (message, fix) = if numbered(written) {
            let fix = Edit::insert(call.handle.span.start, format!("{slot}_"));
            (format!("`{written}` lacks the slot it belongs to"), Some(fix))
        } else {
            let message =
                format!("`{written}` is no handle for `{word}`; a result shows it, such as `{slot}_{letters}1`");
            (message, None)
        };
        self.report(Diagnostic::error(codes::BAD_HANDLE, call.handle.span, message).with_fix(fix));
        None
    }
}
