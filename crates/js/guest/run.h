/* The exports: boot, evaluate, settle, advance. Each is called with an empty stack and leaves it empty. */
#ifndef TK_RUN_H
#define TK_RUN_H

static const JSMallocFunctions tk_functions = { tk_calloc, tk_malloc, tk_free, tk_realloc, js__malloc_usable_size };

static void tk_on_rejection(JSContext *ctx, JSValueConst promise, JSValueConst reason, bool is_handled, void *opaque)
{
    TkRejection **at, *entry;
    for (at = &tk.rejections; *at; at = &(*at)->next) {
        entry = *at;
        if (JS_IsStrictEqual(ctx, entry->promise, promise)) {
            if (is_handled) {
                *at = entry->next;
                JS_FreeValue(ctx, entry->promise);
                JS_FreeValue(ctx, entry->reason);
                tk_free(NULL, entry);
            }
            return;
        }
    }
    if (is_handled)
        return;
    entry = tk_malloc(NULL, sizeof *entry);
    if (!entry)
        tk_host_exhausted();
    entry->next = NULL;
    entry->promise = JS_DupValue(ctx, promise);
    entry->reason = JS_DupValue(ctx, reason);
    *at = entry;
}

TK_EXPORT("tk_boot") void tk_boot(void)
{
    JSValue global;

    tk.rt = JS_NewRuntime2(&tk_functions, NULL);
    tk.ctx = JS_NewContext(tk.rt);
    JS_SetMaxStackSize(tk.rt, TK_STACK_MOST);
    JS_SetHostPromiseRejectionTracker(tk.rt, tk_on_rejection, NULL);
    tk.run = JS_UNDEFINED;
    tk.failure = JS_UNINITIALIZED;
    tk.host = JS_NewObject(tk.ctx);
    JS_SetPropertyFunctionList(tk.ctx, tk.host, tk_host_functions, countof(tk_host_functions));
    global = JS_GetGlobalObject(tk.ctx);
    JS_SetPropertyStr(tk.ctx, global, "__host", JS_DupValue(tk.ctx, tk.host));
    JS_FreeValue(tk.ctx, global);
}

/* Room for `length` bytes and the zero that the parser wants after them. The next export frees it. */
TK_EXPORT("tk_room") void *tk_room(size_t length)
{
    char *room = tk_calloc(NULL, 1, length + 1);
    if (!room)
        tk_host_exhausted();
    return room;
}

/* One file of the prelude. 0, or 1 with an error to read. */
TK_EXPORT("tk_prelude") int32_t tk_prelude(char *code, size_t length, char *name)
{
    JSValue value;
    tk_out_clear();
    value = JS_Eval(tk.ctx, code, length, name, JS_EVAL_TYPE_GLOBAL);
    tk_free(NULL, code);
    tk_free(NULL, name);
    if (JS_IsException(value)) {
        value = JS_GetException(tk.ctx);
        tk_out_thrown(value);
        JS_FreeValue(tk.ctx, value);
        return 1;
    }
    JS_FreeValue(tk.ctx, value);
    return 0;
}

/* The end of the boot: what is global now belongs to the engine. */
TK_EXPORT("tk_ready") void tk_ready(void)
{
    JSPropertyEnum *names;
    uint32_t i;

    tk_out_clear();
    JS_RunGC(tk.rt);
    if (JS_GetOwnPropertyNames(tk.ctx, &names, &tk.base_count, tk.ctx->global_obj, JS_GPN_STRING_MASK) < 0)
        abort();
    tk.base_names = tk_malloc(NULL, (tk.base_count + 1) * sizeof *tk.base_names);
    if (!tk.base_names)
        tk_host_exhausted();
    for (i = 0; i < tk.base_count; i++)
        tk.base_names[i] = JS_DupAtom(tk.ctx, names[i].atom);
    JS_FreePropertyEnum(tk.ctx, names, tk.base_count);
    tk.ctx->random_state = 0;
}

/* Starts a program. The calls and timers that an earlier one still waits for are dropped. */
TK_EXPORT("tk_evaluate") void tk_evaluate(char *code, size_t length)
{
    JSValue value;

    tk_out_clear();
    tk_owed_drop_all();
    JS_FreeValue(tk.ctx, tk.run);
    tk.run = JS_UNDEFINED;
    tk.unwrapped = 0;
    JS_FreeValue(tk.ctx, tk.failure);
    tk.failure = JS_UNINITIALIZED;
    value = JS_Eval(tk.ctx, code, length, "run.js", JS_EVAL_TYPE_GLOBAL | JS_EVAL_FLAG_ASYNC);
    tk_free(NULL, code);
    if (JS_IsException(value))
        tk.failure = JS_GetException(tk.ctx);
    else {
        JS_PromiseMarkAsHandled(tk.ctx, value);
        tk.run = value;
    }
}

static JSValue tk_error(const char *name, const char *message, size_t length)
{
    const int flags = JS_PROP_WRITABLE | JS_PROP_CONFIGURABLE;
    JSValue error;

    if (!strcmp(name, "TypeError"))
        error = JS_NewTypeError(tk.ctx, "%s", "");
    else if (!strcmp(name, "RangeError"))
        error = JS_NewRangeError(tk.ctx, "%s", "");
    else if (!strcmp(name, "SyntaxError"))
        error = JS_NewSyntaxError(tk.ctx, "%s", "");
    else {
        error = JS_NewPlainError(tk.ctx, "%s", "");
        if (JS_IsObject(error) && strcmp(name, "Error"))
            JS_DefinePropertyValueStr(tk.ctx, error, "name", JS_NewString(tk.ctx, name), flags);
    }
    if (JS_IsObject(error))
        JS_DefinePropertyValueStr(tk.ctx, error, "message", JS_NewStringLen(tk.ctx, message, length), flags);
    return error;
}

/* The answer to a call: JSON of a value, or the text of an error with the name given. 0; 1 when no such call is owed; 2 when
   the answer is not JSON. */
TK_EXPORT("tk_settle") int32_t tk_settle(uint64_t id, char *answer, size_t length, char *error_name)
{
    TkOwed *owed = tk_owed_take(id);
    JSValue value = JS_UNDEFINED, done;
    const int is_error = error_name != NULL;

    tk_out_clear();
    if (owed) {
        if (is_error)
            value = tk_error(error_name, answer, length);
        else
            value = JS_ParseJSON(tk.ctx, answer, length, "answer");
    }
    tk_free(NULL, answer);
    tk_free(NULL, error_name);
    if (!owed)
        return 1;
    if (JS_IsException(value)) {
        tk_forget_exception();
        tk_owed_free(owed);
        return 2;
    }
    done = JS_Call(tk.ctx, is_error ? owed->reject : owed->resolve, JS_UNDEFINED, 1, vc(&value));
    if (JS_IsException(done))
        tk_forget_exception();
    JS_FreeValue(tk.ctx, done);
    JS_FreeValue(tk.ctx, value);
    tk_owed_free(owed);
    return 0;
}

static void tk_run_jobs(void)
{
    JSContext *ctx;
    int more;
    while ((more = JS_ExecutePendingJob(tk.rt, &ctx)) != 0) {
        if (more < 0) {
            /* A job never throws by itself; this is an error that no code may catch. */
            JS_FreeValue(tk.ctx, tk.failure);
            tk.failure = JS_GetException(ctx);
            return;
        }
    }
}

static void tk_report_rejections(void)
{
    while (tk.rejections) {
        TkRejection *entry = tk.rejections;
        size_t length;
        const char *text;
        JSValue shown;

        tk.rejections = entry->next;
        shown = tk_inspect(entry->reason);
        text = JS_ToCStringLen(tk.ctx, &length, shown);
        if (text) {
            tk_host_print(4, text, length);
            JS_FreeCString(tk.ctx, text);
        } else
            tk_forget_exception();
        JS_FreeValue(tk.ctx, shown);
        JS_FreeValue(tk.ctx, entry->promise);
        JS_FreeValue(tk.ctx, entry->reason);
        tk_free(NULL, entry);
    }
}

static int32_t tk_threw(JSValueConst value)
{
    tk_out_thrown(value);
    return TK_THREW;
}

/* Where the program stands, its result or error written out. */
static int32_t tk_standing(void)
{
    JSPromiseStateEnum state;
    JSValue value;
    int32_t status;

    if (!JS_IsUninitialized(tk.failure))
        return tk_threw(tk.failure);
    for (;;) {
        state = JS_PromiseState(tk.ctx, tk.run);
        if (state == JS_PROMISE_PENDING) {
            if (tk.owed)
                return TK_WAITING;
            value = JS_NewPlainError(tk.ctx, "the program awaits a promise that nothing will settle");
            status = tk_threw(value);
            JS_FreeValue(tk.ctx, value);
            return status;
        }
        if (state == JS_PROMISE_REJECTED) {
            value = JS_PromiseResult(tk.ctx, tk.run);
            status = tk_threw(value);
            JS_FreeValue(tk.ctx, value);
            return status;
        }
        value = state == JS_PROMISE_FULFILLED ? JS_PromiseResult(tk.ctx, tk.run) : JS_UNDEFINED;
        if (!tk.unwrapped) {
            /* The engine wraps the completion value, so that the `then` of one is not called. */
            JSValue inner = JS_GetPropertyStr(tk.ctx, value, "value");
            JS_FreeValue(tk.ctx, value);
            value = inner;
        }
        if (!JS_IsPromise(value))
            break;
        JS_PromiseMarkAsHandled(tk.ctx, value);
        JS_FreeValue(tk.ctx, tk.run);
        tk.run = value;
        tk.unwrapped = 1;
    }
    if (tk_owes_more_than_timers()) {
        JS_FreeValue(tk.ctx, value);
        return TK_WAITING;
    }
    status = tk_out_result(value);
    JS_FreeValue(tk.ctx, value);
    return status;
}

/* Jobs until none is left. Telling of a rejection runs code of the program, which may leave more. */
static void tk_settle_down(void)
{
    do {
        tk_run_jobs();
        tk_report_rejections();
    } while (JS_IsUninitialized(tk.failure) && JS_IsJobPending(tk.rt));
}

/* Runs what can be run, and says where the program stands. */
TK_EXPORT("tk_advance") int32_t tk_advance(void)
{
    int32_t status;

    tk.steps++;
    tk_out_clear();
    tk_settle_down();
    status = tk_standing();
    if (status != TK_WAITING) {
        /* Showing a result also runs code of the program. Calls that this code makes are not answered. */
        if (JS_IsUninitialized(tk.failure))
            tk_settle_down();
        tk_owed_drop_all();
        JS_FreeValue(tk.ctx, tk.run);
        tk.run = JS_UNDEFINED;
        JS_FreeValue(tk.ctx, tk.failure);
        tk.failure = JS_UNINITIALIZED;
    }
    tk.ctx->random_state = 0;
    return status;
}

/* One job, and whether there are more. Between two jobs the stack is empty too, so an image can be taken there: what that
   shows is that no program can tell where it was stored. */
TK_EXPORT("tk_turn") int32_t tk_turn(void)
{
    JSContext *ctx;

    tk_out_clear();
    if (JS_IsUninitialized(tk.failure) && JS_ExecutePendingJob(tk.rt, &ctx) < 0)
        tk.failure = JS_GetException(ctx);
    tk.ctx->random_state = 0;
    return JS_IsUninitialized(tk.failure) && JS_IsJobPending(tk.rt);
}

/* Every call that is owed: id, kind, argument. */
TK_EXPORT("tk_owed") uint32_t tk_owed_list(void)
{
    TkOwed *owed;
    uint32_t count = 0;

    tk_out_clear();
    for (owed = tk.owed; owed; owed = owed->next) {
        tk_out_u64(owed->id);
        tk_out_u32(owed->kind);
        tk_out_text(owed->argument, owed->length);
        count++;
    }
    return count;
}

TK_EXPORT("tk_last_id") uint64_t tk_last_id(void)
{
    return tk.last_id;
}

TK_EXPORT("tk_out") const char *tk_out(void)
{
    return tk.out;
}

TK_EXPORT("tk_out_length") size_t tk_out_length(void)
{
    return tk.out_length;
}

/* The host has read the result, so its memory is released. */
TK_EXPORT("tk_clear") void tk_clear(void)
{
    tk_out_clear();
}

#endif
