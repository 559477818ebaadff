/* `__host`: what the prelude builds the globals from. The prelude takes it from the global object and deletes it there, so
   that code reaches the host only through the globals. */
#ifndef TK_HOST_H
#define TK_HOST_H

static const char *const tk_kinds[TK_KINDS] = { "timer", "plasm", "plan", "fetch" };

static int tk_kind(JSContext *ctx, JSValueConst value)
{
    const char *name = JS_ToCString(ctx, value);
    int kind, found = -1;
    if (!name)
        return -1;
    for (kind = 0; kind < TK_KINDS; kind++)
        if (!strcmp(name, tk_kinds[kind]))
            found = kind;
    if (found < 0)
        JS_ThrowTypeError(ctx, "no host call '%s'", name);
    JS_FreeCString(ctx, name);
    return found;
}

/* call(kind, json) -> Promise */
static JSValue tk_js_call(JSContext *ctx, JSValueConst this_val, int argc, JSValueConst *argv)
{
    JSValue promise, settle[2];
    const char *argument;
    size_t length;
    TkOwed *owed;
    int kind = tk_kind(ctx, argv[0]);

    if (kind < 0)
        return JS_EXCEPTION;
    if (tk.owed_count >= TK_OWED_MOST)
        return JS_ThrowRangeError(ctx, "at most %d host calls and timers at a time", TK_OWED_MOST);
    argument = JS_ToCStringLen(ctx, &length, argv[1]);
    if (!argument)
        return JS_EXCEPTION;
    if (length > TK_OWED_BYTES - tk.owed_bytes) {
        JS_FreeCString(ctx, argument);
        return JS_ThrowRangeError(ctx, "what host calls ask for has at most %d bytes together", TK_OWED_BYTES);
    }
    promise = JS_NewPromiseCapability(ctx, settle);
    if (JS_IsException(promise)) {
        JS_FreeCString(ctx, argument);
        return promise;
    }
    owed = tk_malloc(NULL, sizeof *owed + length);
    if (!owed)
        tk_host_exhausted();
    owed->id = ++tk.last_id;
    owed->kind = kind;
    owed->promise = JS_DupValue(ctx, promise);
    owed->resolve = settle[0];
    owed->reject = settle[1];
    owed->length = length;
    memcpy(owed->argument, argument, length);
    JS_FreeCString(ctx, argument);
    tk_owed_append(owed);
    return promise;
}

/* cancel(promise): the call is owed no more, and its promise stays as it is. Only a timer can be taken back. */
static JSValue tk_js_cancel(JSContext *ctx, JSValueConst this_val, int argc, JSValueConst *argv)
{
    TkOwed **at;
    for (at = &tk.owed; *at; at = &(*at)->next) {
        TkOwed *owed = *at;
        if (owed->kind == TK_TIMER && JS_IsStrictEqual(ctx, owed->promise, argv[0])) {
            tk_owed_free(tk_owed_unlink(at));
            return JS_TRUE;
        }
    }
    return JS_FALSE;
}

static JSValue tk_js_now(JSContext *ctx, JSValueConst this_val, int argc, JSValueConst *argv)
{
    return JS_NewFloat64(ctx, tk_host_now());
}

static JSValue tk_js_random(JSContext *ctx, JSValueConst this_val, int argc, JSValueConst *argv)
{
    uint32_t length;
    uint8_t *bytes;
    JSValue array;

    if (JS_ToUint32(ctx, &length, argv[0]))
        return JS_EXCEPTION;
    if (length > 65536)
        return JS_ThrowRangeError(ctx, "at most 65536 random bytes at a time");
    bytes = tk_malloc(NULL, length + 1);
    if (!bytes)
        tk_host_exhausted();
    tk_host_random(bytes, length);
    array = JS_NewUint8ArrayCopy(ctx, bytes, length);
    tk_free(NULL, bytes);
    return array;
}

/* digest(name, Uint8Array) -> Uint8Array */
static JSValue tk_js_digest(JSContext *ctx, JSValueConst this_val, int argc, JSValueConst *argv)
{
    size_t name_length, length;
    uint8_t *bytes, into[64];
    const char *name;
    int32_t made;

    bytes = JS_GetUint8Array(ctx, &length, argv[1]);
    if (!bytes && JS_HasException(ctx))
        return JS_EXCEPTION;
    name = JS_ToCStringLen(ctx, &name_length, argv[0]);
    if (!name)
        return JS_EXCEPTION;
    made = tk_host_digest(name, name_length, bytes, length, into);
    JS_FreeCString(ctx, name);
    if (made <= 0 || made > 64)
        return JS_ThrowRangeError(ctx, "no such digest");
    return JS_NewUint8ArrayCopy(ctx, into, made);
}

static JSValue tk_js_print(JSContext *ctx, JSValueConst this_val, int argc, JSValueConst *argv)
{
    int32_t level;
    size_t length;
    const char *text;

    if (JS_ToInt32(ctx, &level, argv[0]))
        return JS_EXCEPTION;
    text = JS_ToCStringLen(ctx, &length, argv[1]);
    if (!text)
        return JS_EXCEPTION;
    tk_host_print(level, text, length);
    JS_FreeCString(ctx, text);
    return JS_UNDEFINED;
}

/* zone(name, epochMs) -> minutes east of UTC */
static JSValue tk_js_zone(JSContext *ctx, JSValueConst this_val, int argc, JSValueConst *argv)
{
    double epoch;
    size_t length;
    const char *name;
    int32_t minutes;

    if (JS_ToFloat64(ctx, &epoch, argv[1]))
        return JS_EXCEPTION;
    name = JS_ToCStringLen(ctx, &length, argv[0]);
    if (!name)
        return JS_EXCEPTION;
    minutes = tk_host_zone(name, length, epoch);
    if (minutes == INT32_MIN)
        JS_ThrowRangeError(ctx, "no time zone '%s'", name);
    JS_FreeCString(ctx, name);
    return minutes == INT32_MIN ? JS_EXCEPTION : JS_NewInt32(ctx, minutes);
}

/* surroundings() -> JSON text */
static JSValue tk_js_surroundings(JSContext *ctx, JSValueConst this_val, int argc, JSValueConst *argv)
{
    size_t length = tk_host_surroundings(NULL, 0);
    char *text = tk_malloc(NULL, length + 1);
    JSValue value;

    if (!text)
        tk_host_exhausted();
    if (tk_host_surroundings(text, length) != length)
        abort();
    value = JS_NewStringLen(ctx, text, length);
    tk_free(NULL, text);
    return value;
}

static const JSCFunctionListEntry tk_host_functions[] = {
    JS_CFUNC_DEF("call", 2, tk_js_call),
    JS_CFUNC_DEF("cancel", 1, tk_js_cancel),
    JS_CFUNC_DEF("now", 0, tk_js_now),
    JS_CFUNC_DEF("random", 1, tk_js_random),
    JS_CFUNC_DEF("digest", 2, tk_js_digest),
    JS_CFUNC_DEF("print", 2, tk_js_print),
    JS_CFUNC_DEF("zone", 2, tk_js_zone),
    JS_CFUNC_DEF("surroundings", 0, tk_js_surroundings),
};

#endif
