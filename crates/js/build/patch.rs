//! The changes that our guest needs in QuickJS-NG's own text.
//! Invariant: each text to be replaced is there exactly as often as said, else the build stops; a new version of the sources
//! cannot be patched by half.

use std::error::Error;
use std::fmt;

pub struct Patch {
    pub why: &'static str,
    pub times: usize,
    pub before: &'static str,
    pub after: &'static str,
}

/// A text to be replaced is not there as often as it was.
#[derive(Debug)]
pub struct Unfit {
    why: &'static str,
    found: usize,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { why, found } = self;
        write!(f, "quickjs.c is not the text our patch was made for: \"{why}\" found {found} places")
    }
}

impl Error for Unfit {}

pub fn apply(mut text: String) -> Result<String, Unfit> {
    for patch in PATCHES {
        let found = text.matches(patch.before).count();
        if found != patch.times {
            return Err(Unfit { why: patch.why, found });
        }
        text = text.replace(patch.before, patch.after);
    }
    Ok(text)
}

const PATCHES: &[Patch] = &[
    Patch {
        why: "a global let or const may be declared over a var",
        times: 1,
        before: "        if (prs && !(prs->flags & JS_PROP_CONFIGURABLE))
            goto fail_redeclaration;",
        after: "        if (prs && !(prs->flags & (JS_PROP_CONFIGURABLE | JS_PROP_WRITABLE)))
            goto fail_redeclaration;",
    },
    Patch {
        why: "a global let, const or class may be declared again",
        times: 1,
        before: "    prs = find_own_property1(p, prop);
    if (prs) {
    fail_redeclaration:",
        after: "    if (0) {
    fail_redeclaration:",
    },
    Patch {
        why: "the newest declaration of a global says whether it may be assigned",
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
        why: "a global function declared over a let takes its place",
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
        why: "the completion value travels in an object that no prototype reaches",
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
        why: "Math.random is seeded anew in each step that uses it",
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
        why: "a small block is zeroed when it is freed",
        times: 1,
        before: "        b->u.free_next = ar->first_free_block;
        ar->first_free_block = block_idx;",
        after: "        tk_wipe(b->user_data, block_size - sizeof(JSMallocBlockHeader));
        b->ref_count = 0;
        b->u.free_next = ar->first_free_block;
        ar->first_free_block = block_idx;",
    },
    Patch {
        why: "what a small block has left when it shrinks is zeroed: a buffer that was made smaller would keep it",
        times: 1,
        before: "        if (total_size <= block_size)
            return ptr; /* still fits the current size class */",
        after: "        if (total_size <= block_size) {
            tk_wipe((uint8_t *)ptr + size, block_size - sizeof(JSMallocBlockHeader) - size);
            return ptr;
        }",
    },
    Patch {
        why: "the place of an element that was popped or shifted is empty: an array of numbers would keep them",
        times: 2,
        before: "                p->u.array.count--;
",
        after: "                arrp[--p->u.array.count] = JS_UNDEFINED;
",
    },
    Patch {
        why: "JSON.stringify looks through all it is inside of at each level: a deep value would take hours to fail",
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
        why: "no code may catch that the memory is used up",
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
