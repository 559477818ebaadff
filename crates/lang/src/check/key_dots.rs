//! Expands `..` among filters and arguments. Taught tables write `..` for the slots that a call shares with a key that
//! was spelled out earlier: all slots of the key except the last.
//! Invariant: only a taught line may contain `..`. For a program, the checker reports which slots `..` means.

use std::borrow::Cow;

use base::{Diagnostic, Edit, Span};
use catalog::{Capability, Param};

use super::Checker;
use crate::codes;
use crate::scope::{ExposedEntity, NameStyle};
use crate::syntax::tree::{Arg, DottedName, Name, Pred};

impl Checker<'_> {
    /// Replaces a `..` among filters by one placeholder for each slot that the `..` means.
    pub(super) fn expand_dots_in_preds<'p>(&self, exposed: &ExposedEntity, preds: &'p [Pred]) -> Cow<'p, [Pred]> {
        expand_dots(exposed, preds, Pred::is_dots, |pred, slot| Pred {
            path: DottedName { names: vec![Name { text: slot.into(), span: pred.op_span }] },
            ..pred.clone()
        })
    }

    /// Replaces a `..` among arguments by one placeholder for each slot that the `..` means.
    pub(super) fn expand_dots_in_args<'p>(&self, exposed: &ExposedEntity, args: &'p [Arg]) -> Cow<'p, [Arg]> {
        expand_dots(exposed, args, Arg::is_dots, |arg, slot| Arg {
            slot: Name { text: slot.into(), span: arg.slot.span },
            ..arg.clone()
        })
    }

    /// Reports a `..` among the filters of a program. Returns whether there was one.
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

    /// Reports a `..` among the arguments of a program. Returns whether there was one.
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

    /// Reports the `..` at the index `at` of `slots`. The correction writes the missing slots by their names, because
    /// names are valid in tables of every style.
    fn report_dots(&mut self, exposed: &ExposedEntity, capability: &Capability, slots: &[&Name], at: usize) {
        let Some(dots) = slots.get(at) else { return };
        let is_given =
            |param: &Param| slots.iter().any(|name| self.scope.wire_name(&exposed.catalog, &name.text) == param.name);
        let text = capability.text.as_ref();
        let missing_params: Vec<&Param> =
            capability.required().filter(|p| text != Some(&p.name) && !is_given(p)).collect();
        let (message, fix) = if missing_params.is_empty() {
            let end = slots.get(at + 1).map_or(dots.span.end, |next| next.span.start);
            ("`..` stands for no slot here".to_owned(), Edit::delete(Span { start: dots.span.start, end }))
        } else {
            let names: Vec<String> = missing_params.iter().map(|p| format!("`{}`", p.name)).collect();
            let samples = self.write_slot_samples(exposed, missing_params.iter().copied(), NameStyle::Names);
            (format!("`..` stands for {}", names.join(", ")), Edit::replace(dots.span, samples))
        };
        self.report(Diagnostic::error(codes::PLACEHOLDER, dots.span, message).with_fix([fix]));
    }
}

/// Replaces each `..` item by one item for each slot of the key except the last. `make_item` makes an item from a slot's
/// name.
fn expand_dots<'p, T: Clone>(
    exposed: &ExposedEntity,
    written: &'p [T],
    is_dots: impl Fn(&T) -> bool,
    make_item: impl Fn(&T, &str) -> T,
) -> Cow<'p, [T]> {
    if !written.iter().any(&is_dots) {
        return Cow::Borrowed(written);
    }
    let key = exposed.definition().map(|e| e.key.as_slice()).unwrap_or_default();
    let leading_slots = &key[..key.len().saturating_sub(1)];
    let expand = |item: &T| -> Vec<T> {
        if is_dots(item) {
            leading_slots.iter().map(|slot| make_item(item, slot)).collect()
        } else {
            vec![item.clone()]
        }
    };
    Cow::Owned(written.iter().flat_map(expand).collect())
}
