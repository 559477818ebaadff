/* The state of the shim. All of it lies in linear memory and so in every image.
   Invariant: ids of owed calls only grow, in a heap and in every heap that comes of it. */
#ifndef TK_STATE_H
#define TK_STATE_H

enum { TK_TIMER, TK_PLASM, TK_PLAN, TK_FETCH, TK_KINDS };

/* A promise storm is refused here, long before it is a burden to the host. */
#define TK_OWED_MOST 10000
/* And what they ask for, together: it is stored when the program waits. */
#define TK_OWED_BYTES (16 * 1024 * 1024)

/* A call that the host owes an answer to. */
typedef struct TkOwed {
    struct TkOwed *next;
    uint64_t id;
    uint32_t kind;
    JSValue promise, resolve, reject;
    size_t length;
    char argument[];
} TkOwed;

/* A promise that was rejected with nobody listening. */
typedef struct TkRejection {
    struct TkRejection *next;
    JSValue promise, reason;
} TkRejection;

static struct {
    JSRuntime *rt;
    JSContext *ctx;
    JSValue host;       /* the object that the prelude knows as `__host` */
    JSValue run;        /* the promise of the program, or undefined */
    int unwrapped;       /* whether `run` is a value's own promise, no more the engine's, which holds `{value}` */
    JSValue failure;    /* the error that ended the run outside of its promise; uninitialized if there is none */
    uint64_t steps;     /* no heap is equal to one it descends from */
    uint64_t last_id;
    TkOwed *owed, **owed_end; /* in the order they were asked for; the end is where the next one goes */
    uint32_t owed_count;
    size_t owed_bytes;
    TkRejection *rejections;
    char *out;          /* the result of the last export, for the host to read */
    size_t out_length, out_room;
    JSAtom *base_names; /* the global names that were there after the boot */
    uint32_t base_count;
} tk;

/* --- results for the host to read --- */

static void tk_out_clear(void)
{
    tk_free(NULL, tk.out);
    tk.out = NULL;
    tk.out_length = tk.out_room = 0;
}

static void tk_out_bytes(const void *bytes, size_t length)
{
    if (tk.out_length + length > tk.out_room) {
        size_t room = (tk.out_length + length) * 2 + 64;
        char *grown = tk_realloc(NULL, tk.out, room);
        if (!grown)
            tk_host_exhausted();
        tk.out = grown;
        tk.out_room = room;
    }
    memcpy(tk.out + tk.out_length, bytes, length);
    tk.out_length += length;
}

static void tk_out_u32(uint32_t value)
{
    tk_out_bytes(&value, sizeof value);
}

static void tk_out_u64(uint64_t value)
{
    tk_out_bytes(&value, sizeof value);
}

/* A length and the bytes. */
static void tk_out_text(const char *text, size_t length)
{
    tk_out_u32(length);
    tk_out_bytes(text, length);
}

/* --- calls owed --- */

static void tk_owed_free(TkOwed *owed)
{
    JS_FreeValue(tk.ctx, owed->promise);
    JS_FreeValue(tk.ctx, owed->resolve);
    JS_FreeValue(tk.ctx, owed->reject);
    tk_free(NULL, owed);
}

static void tk_owed_append(TkOwed *owed)
{
    if (!tk.owed)
        tk.owed_end = &tk.owed;
    owed->next = NULL;
    *tk.owed_end = owed;
    tk.owed_end = &owed->next;
    tk.owed_count++;
    tk.owed_bytes += owed->length;
}

/* Takes the one that `at` points to out of the list. */
static TkOwed *tk_owed_unlink(TkOwed **at)
{
    TkOwed *owed = *at;
    if (tk.owed_end == &owed->next)
        tk.owed_end = at;
    *at = owed->next;
    tk.owed_count--;
    tk.owed_bytes -= owed->length;
    return owed;
}

static void tk_owed_drop_all(void)
{
    while (tk.owed)
        tk_owed_free(tk_owed_unlink(&tk.owed));
}

static TkOwed *tk_owed_take(uint64_t id)
{
    TkOwed **at;
    for (at = &tk.owed; *at; at = &(*at)->next)
        if ((*at)->id == id)
            return tk_owed_unlink(at);
    return NULL;
}

static int tk_owes_more_than_timers(void)
{
    TkOwed *owed;
    for (owed = tk.owed; owed; owed = owed->next)
        if (owed->kind != TK_TIMER)
            return 1;
    return 0;
}

#endif
