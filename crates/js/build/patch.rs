//! The changes that the guest needs in the source of QuickJS-NG, as pairs of texts.
//! Invariant: the build stops unless each `before` occurs exactly `times` times, so a new version of the sources is
//! never patched partially.

use std::error::Error;
use std::fmt;

pub struct Patch {
    /// The behaviour after the change, and the reason where it is not obvious.
    pub effect: &'static str,
    /// The number of occurrences of `before` in the source.
    pub times: usize,
    pub before: &'static str,
    pub after: &'static str,
}

/// The source has another number of occurrences than the patch expects, so it is another version.
#[derive(Debug)]
pub struct PatchMismatch {
    effect: &'static str,
    occurrences: usize,
}

impl fmt::Display for PatchMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { effect, occurrences } = self;
        write!(f, "quickjs.c does not fit the patch: \"{effect}\" matches {occurrences} places")
    }
}

impl Error for PatchMismatch {}

pub fn apply(mut text: String) -> Result<String, PatchMismatch> {
    for patch in PATCHES {
        let occurrences = text.matches(patch.before).count();
        if occurrences != patch.times {
            return Err(PatchMismatch { effect: patch.effect, occurrences });
        }
        text = text.replace(patch.before, patch.after);
    }
    Ok(text)
}

const PATCHES: &[Patch] = &[
    Patch {
        effect: "a global let or const may be declared over a var",
        times: 1,
        before: "        if (prs && !(prs->flags & JS_PROP_CONFIGURABLE))
            goto fail_redeclaration;",
        after: "        if (prs && !(prs->flags & (JS_PROP_CONFIGURABLE | JS_PROP_WRITABLE)))
            goto fail_redeclaration;",
    },
    Patch {
        effect: "a global let, const or class may be declared again",
        times: 1,
        before: "    prs = find_own_property1(p, prop);
    if (prs) {
    fail_redeclaration:",
        after: "    if (0) {
    fail_redeclaration:",
    },
    Patch {
        effect: "the newest declaration of a global decides whether it may be assigned",
        times: 1,
        before: "    if (def_flags & DEFINE_GLOBAL_LEX_VAR) {
        p = JS_VALUE_GET_OBJ(ctx->global_var_obj);
        flags =",
        after: "    p = JS_VALUE_GET_OBJ(ctx->global_var_obj);
    prs = find_own_property1(p, prop);
    if (prs) {
        flags = JS_PROP_ENUMERABLE | JS_PROP_CONFIGURABLE |
            (def_flags & DEFINE_GLOBAL_LEX_VAR ? def_flags & JS_PROP_WRITABLE : JS_PROP_WRITABLE);
        return js_update_property_flags(ctx, p, &prs, flags);
    }
    if (def_flags & DEFINE_GLOBAL_LEX_VAR) {
        p = JS_VALUE_GET_OBJ(ctx->global_var_obj);
        flags =",
    },
    Patch {
        effect: "a global function declared over a let replaces it",
        times: 1,
        before: "                                   JSValue func, int def_flags)
{

    JSObject *p;
    JSShapeProperty *prs;
    int flags;
",
        after: "                                   JSValue func, int def_flags)
{

    JSObject *p;
    JSShapeProperty *prs;
    JSProperty *pr;
    int flags;

    p = JS_VALUE_GET_OBJ(ctx->global_var_obj);
    prs = find_own_property(&pr, p, prop);
    if (prs) {
        set_value(ctx, &pr->u.value, js_dup(func));
        return js_update_property_flags(ctx, p, &prs, prs->flags | JS_PROP_WRITABLE);
    }
",
    },
    Patch {
        effect: "the completion value is in an object without a prototype, out of reach of Object.prototype",
        times: 2,
        before: "                emit_op(s, OP_object);
                emit_op(s, OP_dup);
                emit_op(s, OP_get_loc);
                emit_u16(s, fd->eval_ret_idx);
                emit_op(s, OP_put_field);
                emit_atom(s, JS_ATOM_value);",
        after: "                emit_op(s, OP_object);
                emit_op(s, OP_null);
                emit_op(s, OP_set_proto);
                emit_op(s, OP_get_loc);
                emit_u16(s, fd->eval_ret_idx);
                emit_op(s, OP_define_field);
                emit_atom(s, JS_ATOM_value);",
    },
    Patch {
        effect: "Math.random is seeded in each step: two restores of one heap would draw the same numbers",
        times: 1,
        before: "    v = xorshift64star(&ctx->random_state);
    /* 1.0 <= u.d < 2 */",
        after: "    if (unlikely(ctx->random_state == 0)) {
        tk_host_random(&ctx->random_state, sizeof ctx->random_state);
        ctx->random_state |= 1;
    }
    v = xorshift64star(&ctx->random_state);
    /* 1.0 <= u.d < 2 */",
    },
    Patch {
        effect: "a small block is zeroed when it is freed",
        times: 1,
        before: "        b->u.free_next = ar->first_free_block;
        ar->first_free_block = block_idx;",
        after: "        tk_wipe(b->user_data, block_size - sizeof(JSMallocBlockHeader));
        b->ref_count = 0;
        b->u.free_next = ar->first_free_block;
        ar->first_free_block = block_idx;",
    },
    Patch {
        effect: "the rest of a small block that shrinks is zeroed: a smaller buffer would keep old bytes",
        times: 1,
        before: "        if (total_size <= block_size)
            return ptr; /* still fits the current size class */",
        after: "        if (total_size <= block_size) {
            tk_wipe((uint8_t *)ptr + size, block_size - sizeof(JSMallocBlockHeader) - size);
            return ptr;
        }",
    },
    Patch {
        effect: "the slot of a popped or shifted element is cleared: the array would keep old values",
        times: 2,
        before: "                p->u.array.count--;
",
        after: "                arrp[--p->u.array.count] = JS_UNDEFINED;
",
    },
    Patch {
        effect: "JSON.stringify has a depth limit: it searches all outer levels at each level, which takes hours",
        times: 1,
        before: "    if (js_check_stack_overflow(ctx->rt, 0)) {
        JS_ThrowStackOverflow(ctx);
        goto exception;
    }

    if (JS_IsObject(val)) {",
        after: "    if (js_check_stack_overflow(ctx->rt, 0) || JS_VALUE_GET_OBJ(jsc->stack)->u.array.count > TK_JSON_DEPTH) {
        JS_ThrowStackOverflow(ctx);
        goto exception;
    }

    if (JS_IsObject(val)) {",
    },
    Patch {
        effect: "code cannot catch that the memory is used up",
        times: 1,
        before: "JSValue JS_ThrowOutOfMemory(JSContext *ctx)
{
",
        after: "JSValue JS_ThrowOutOfMemory(JSContext *ctx)
{
    tk_host_exhausted();
",
    },
];
