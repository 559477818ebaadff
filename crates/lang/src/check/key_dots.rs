//! Expands `..` among filters and arguments. Tables write it for the slots that a list or a call shares with a key
//! spelled out before: all slots of the key except its last.
//! Invariant: only a taught line may have `..`. A program that copied it is told which slots it stands for.

use std::borrow::Cow;

use base::{Diagnostic, Edit, Span};
use catalog::{Capability, Param};

use super::Checker;
use crate::codes;
use crate::scope::{ExposedEntity, NameStyle};
use crate::syntax::tree::{Arg, DottedName, Name, Pred};

impl Checker<'_> {
    /// Replaces `..` among filters by places to fill, one for each slot that it stands for.
    pub(super) fn expand_dots_in_preds<'p>(&self, exposed: &ExposedEntity, preds: &'p [Pred]) -> Cow<'p, [Pred]> {
        expand_dots(exposed, preds, Pred::is_dots, |pred, slot| Pred {
            path: DottedName { names: vec![Name { text: slot.into(), span: pred.op_span }] },
            ..pred.clone()
        })
    }

    /// Replaces `..` among arguments by places to fill.
    pub(super) fn expand_dots_in_args<'p>(&self, exposed: &ExposedEntity, args: &'p [Arg]) -> Cow<'p, [Arg]> {
        expand_dots(exposed, args, Arg::is_dots, |arg, slot| Arg {
            slot: Name { text: slot.into(), span: arg.slot.span },
            ..arg.clone()
        })
    }

    /// Reports `..` among the filters of a program. Returns whether there was one.
    pub(super) fn reject_dots_in_preds(
        &mut self,
        exposed: &ExposedEntity,
        capability: &Capability,
        preds: &[Pred],
    ) -> bool {
        let Some(at) = preds.iter().position(Pred::is_dots).filter(|_| !self.allows_placeholders) else { return false };
        let slots: Vec<&Name> = preds.iter().filter_map(|pred| pred.path.names.first()).collect();
        self.report_dots(exposed, capability, &slots, at);
        true
    }

    /// Reports `..` among the arguments of a program. Returns whether there was one.
    pub(super) fn reject_dots_in_args(
        &mut self,
        exposed: &ExposedEntity,
        capability: &Capability,
        args: &[Arg],
    ) -> bool {
        let Some(at) = args.iter().position(Arg::is_dots).filter(|_| !self.allows_placeholders) else { return false };
        let slots: Vec<&Name> = args.iter().map(|arg| &arg.slot).collect();
        self.report_dots(exposed, capability, &slots, at);
        true
    }

    /// Reports `..` at the index `at` of `slots`. The correction writes the slots that the call lacks by their names,
    /// which work whatever style the table has.
    fn report_dots(&mut self, exposed: &ExposedEntity, capability: &Capability, slots: &[&Name], at: usize) {
        let Some(dots) = slots.get(at) else { return };
        let given =
            |param: &Param| slots.iter().any(|name| self.scope.wire_name(&exposed.catalog, &name.text) == param.name);
        let text = capability.text.as_ref();
        let lacking: Vec<&Param> = capability.required().filter(|p| text != Some(&p.name) && !given(p)).collect();
        let (message, fix) = if lacking.is_empty() {
            let end = slots.get(at + 1).map_or(dots.span.end, |next| next.span.start);
            ("`..` stands for no slot here".to_owned(), Edit::delete(Span { start: dots.span.start, end }))
        } else {
            let names: Vec<String> = lacking.iter().map(|p| format!("`{}`", p.name)).collect();
            let samples = self.slot_samples(exposed, lacking.iter().copied(), NameStyle::Names);
            (format!("`..` stands for {}", names.join(", ")), Edit::replace(dots.span, samples))
        };
        self.report(Diagnostic::error(codes::PLACEHOLDER, dots.span, message).with_fix([fix]));
    }
}

/// Replaces `..` among items by one item for each slot of the key except the last. `named` makes an item of a slot.
fn expand_dots<'p, T: Clone>(
    exposed: &ExposedEntity,
    written: &'p [T],
    is_dots: impl Fn(&T) -> bool,
    named: impl Fn(&T, &str) -> T,
) -> Cow<'p, [T]> {
    if !written.iter().any(&is_dots) {
        return Cow::Borrowed(written);
    }
    let key = exposed.definition().map(|e| e.key.as_slice()).unwrap_or_default();
    let leading = &key[..key.len().saturating_sub(1)];
    let expand = |item: &T| -> Vec<T> {
        if is_dots(item) { leading.iter().map(|slot| named(item, slot)).collect() } else { vec![item.clone()] }
    };
    Cow::Owned(written.iter().flat_map(expand).collect())
}
