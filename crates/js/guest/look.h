/* The globals of a heap: each with a kind, a short look, a size, and a digest of all that is reached from it.
   Invariant: no code of the program runs. Getters are not called, proxies not asked; what is digested is what lies there.

   Things are numbered in the order they are first reached, breadth first, and a thing is written with the numbers of what
   it refers to: equal graphs give equal bytes, cycles included, and no depth needs a stack. */
#ifndef TK_LOOK_H
#define TK_LOOK_H

#define TK_PREVIEW 80

typedef struct TkWalk {
    JSObject **things;   /* in the order of their numbers */
    uint32_t count, room;
    uint32_t *slots;     /* number + 1 by address, open addressing */
    uint32_t slot_count; /* a power of two */
    uint64_t size;
} TkWalk;

static void *tk_need(void *at)
{
    if (!at)
        tk_host_exhausted();
    return at;
}

static uint32_t tk_walk_slot(TkWalk *walk, JSObject *thing)
{
    uint32_t at = ((uint32_t)(uintptr_t)thing >> 3) * 2654435761u & (walk->slot_count - 1);
    while (walk->slots[at] && walk->things[walk->slots[at] - 1] != thing)
        at = (at + 1) & (walk->slot_count - 1);
    return at;
}

static uint32_t tk_walk_number(TkWalk *walk, JSObject *thing)
{
    uint32_t at, i;
    if (walk->count * 2 >= walk->slot_count) {
        tk_free(NULL, walk->slots);
        walk->slot_count = walk->slot_count ? walk->slot_count * 2 : 64;
        walk->slots = tk_need(tk_calloc(NULL, walk->slot_count, sizeof *walk->slots));
        for (i = 0; i < walk->count; i++)
            walk->slots[tk_walk_slot(walk, walk->things[i])] = i + 1;
    }
    at = tk_walk_slot(walk, thing);
    if (!walk->slots[at]) {
        if (walk->count == walk->room) {
            walk->room = walk->room ? walk->room * 2 : 32;
            walk->things = tk_need(tk_realloc(NULL, walk->things, walk->room * sizeof *walk->things));
        }
        walk->things[walk->count++] = thing;
        walk->slots[at] = walk->count;
    }
    return walk->slots[at] - 1;
}

static void tk_absorb_tag(char tag, uint32_t number)
{
    char bytes[5];
    bytes[0] = tag;
    memcpy(bytes + 1, &number, 4);
    tk_host_absorb(bytes, 5);
}

static void tk_absorb_text(char tag, const char *text, size_t length)
{
    tk_absorb_tag(tag, length);
    tk_host_absorb(text, length);
}

static void tk_absorb_atom(char tag, JSAtom atom)
{
    size_t length;
    const char *text = JS_AtomToCStringLen(tk.ctx, &length, atom);
    if (text) {
        tk_absorb_text(tag, text, length);
        JS_FreeCString(tk.ctx, text);
    } else
        tk_forget_exception();
}

/* Numbers that are equal are the same, however the engine keeps them. */
static void tk_absorb_number(double number)
{
    char bytes[9];
    bytes[0] = 'n';
    memcpy(bytes + 1, &number, 8);
    tk_host_absorb(bytes, 9);
}

static void tk_absorb_value(TkWalk *walk, JSValueConst value)
{
    size_t length;
    const char *text;

    switch (JS_VALUE_GET_NORM_TAG(value)) {
    case JS_TAG_OBJECT:
        tk_absorb_tag('#', tk_walk_number(walk, JS_VALUE_GET_OBJ(value)));
        break;
    case JS_TAG_INT:
        tk_absorb_number(JS_VALUE_GET_INT(value));
        break;
    case JS_TAG_FLOAT64:
        tk_absorb_number(JS_VALUE_GET_FLOAT64(value));
        break;
    case JS_TAG_BOOL:
        tk_absorb_tag('b', JS_VALUE_GET_BOOL(value));
        break;
    case JS_TAG_STRING:
    case JS_TAG_STRING_ROPE:
    case JS_TAG_BIG_INT:
    case JS_TAG_SHORT_BIG_INT:
        text = JS_ToCStringLen(tk.ctx, &length, value);
        if (text) {
            walk->size += length;
            tk_absorb_text(JS_IsBigInt(value) ? 'i' : 's', text, length);
            JS_FreeCString(tk.ctx, text);
        } else
            tk_forget_exception();
        break;
    default:
        tk_absorb_tag('t', JS_VALUE_GET_NORM_TAG(value));
    }
}

static int tk_is_function(JSObject *thing)
{
    return js_class_has_bytecode(thing->class_id);
}

static int tk_of_the_engine(JSObject *thing)
{
    uint32_t i;
    if (tk_is_function(thing)) {
        const char *file = JS_AtomToCString(tk.ctx, thing->u.func.function_bytecode->filename);
        int ours = !file || strcmp(file, "run.js");
        JS_FreeCString(tk.ctx, file);
        return ours;
    }
    if (thing->class_id == JS_CLASS_C_FUNCTION || thing == JS_VALUE_GET_OBJ(tk.ctx->global_obj))
        return 1;
    for (i = 0; i < tk.rt->class_count; i++) {
        JSValue proto = tk.ctx->class_proto[i];
        if (JS_IsObject(proto) && JS_VALUE_GET_OBJ(proto) == thing)
            return 1;
    }
    return 0;
}

static void tk_absorb_function(TkWalk *walk, JSObject *thing)
{
    JSFunctionBytecode *code = thing->u.func.function_bytecode;
    int i;
    if (code->source) {
        tk_absorb_text('f', code->source, code->source_len);
        walk->size += code->source_len;
    } else
        tk_absorb_text('f', (const char *)code->byte_code_buf, code->byte_code_len);
    for (i = 0; thing->u.func.var_refs && i < code->closure_var_count; i++)
        if (thing->u.func.var_refs[i])
            tk_absorb_value(walk, *thing->u.func.var_refs[i]->pvalue);
}

static void tk_absorb_own(TkWalk *walk, JSObject *thing)
{
    struct list_head *el;
    uint32_t i;

    switch (thing->class_id) {
    case JS_CLASS_NUMBER:
    case JS_CLASS_STRING:
    case JS_CLASS_BOOLEAN:
    case JS_CLASS_SYMBOL:
    case JS_CLASS_DATE:
    case JS_CLASS_BIG_INT:
        tk_absorb_value(walk, thing->u.object_data);
        break;
    case JS_CLASS_REGEXP:
        tk_absorb_value(walk, JS_MKPTR(JS_TAG_STRING, thing->u.regexp.pattern));
        break;
    case JS_CLASS_ARRAY_BUFFER:
        if (thing->u.array_buffer && thing->u.array_buffer->data) {
            tk_absorb_text('a', (const char *)thing->u.array_buffer->data, thing->u.array_buffer->byte_length);
            walk->size += thing->u.array_buffer->byte_length;
        }
        break;
    case JS_CLASS_MAP:
    case JS_CLASS_SET:
        list_for_each(el, &thing->u.map_state->records) {
            JSMapRecord *record = list_entry(el, JSMapRecord, link);
            if (record->empty)
                continue;
            tk_absorb_value(walk, record->key);
            tk_absorb_value(walk, record->value);
            walk->size += sizeof *record;
        }
        break;
    case JS_CLASS_PROXY:
        tk_absorb_value(walk, thing->u.proxy_data->target);
        tk_absorb_value(walk, thing->u.proxy_data->handler);
        break;
    case JS_CLASS_PROMISE:
        tk_absorb_tag('p', thing->u.promise_data->promise_state);
        tk_absorb_value(walk, thing->u.promise_data->promise_result);
        break;
    default:
        if (tk_is_function(thing))
            tk_absorb_function(walk, thing);
        else if (is_typed_array(thing->class_id) || thing->class_id == JS_CLASS_DATAVIEW) {
            JSTypedArray *array = thing->u.typed_array;
            if (is_typed_array(thing->class_id))
                array = thing->u.array.u1.typed_array;
            tk_absorb_tag('o', array->offset);
            tk_absorb_tag('l', array->length);
            tk_absorb_tag('#', tk_walk_number(walk, array->buffer));
        } else if (thing->fast_array && thing->class_id == JS_CLASS_ARRAY) {
            for (i = 0; i < thing->u.array.count; i++)
                tk_absorb_value(walk, thing->u.array.u.values[i]);
            walk->size += thing->u.array.count * sizeof(JSValue);
        }
    }
}

static void tk_absorb_thing(TkWalk *walk, JSObject *thing)
{
    JSShapeProperty *prs = get_shape_prop(thing->shape);
    JSObject *proto = thing->shape->proto;
    int i;

    tk_absorb_tag('c', thing->class_id);
    if (tk_of_the_engine(thing)) {
        tk_absorb_tag('e', tk_is_function(thing) ? thing->u.func.function_bytecode->line_num : 0);
        return;
    }
    walk->size += sizeof *thing + thing->shape->prop_count * sizeof(JSProperty);
    if (proto)
        tk_absorb_tag('#', tk_walk_number(walk, proto));
    tk_absorb_own(walk, thing);
    for (i = 0; i < thing->shape->prop_count; i++, prs++) {
        JSProperty *pr = &thing->prop[i];
        if (prs->atom == JS_ATOM_NULL)
            continue;
        tk_absorb_atom('k', prs->atom);
        tk_absorb_tag('w', prs->flags);
        switch (prs->flags & JS_PROP_TMASK) {
        case JS_PROP_NORMAL:
            tk_absorb_value(walk, pr->u.value);
            break;
        case JS_PROP_GETSET:
            if (pr->u.getset.getter)
                tk_absorb_tag('g', tk_walk_number(walk, pr->u.getset.getter));
            if (pr->u.getset.setter)
                tk_absorb_tag('h', tk_walk_number(walk, pr->u.getset.setter));
            break;
        case JS_PROP_VARREF:
            tk_absorb_value(walk, *pr->u.var_ref->pvalue);
            break;
        }
    }
}

static uint64_t tk_digest(JSValueConst value)
{
    TkWalk walk = { 0 };
    uint32_t i;

    tk_absorb_value(&walk, value);
    for (i = 0; i < walk.count; i++)
        tk_absorb_thing(&walk, walk.things[i]);
    tk_free(NULL, walk.things);
    tk_free(NULL, walk.slots);
    return walk.size + sizeof(JSValue);
}

/* --- a short look --- */

static const char *tk_kind_of(JSValueConst value)
{
    JSObject *thing;
    switch (JS_VALUE_GET_NORM_TAG(value)) {
    case JS_TAG_INT: case JS_TAG_FLOAT64: return "number";
    case JS_TAG_STRING: case JS_TAG_STRING_ROPE: return "string";
    case JS_TAG_BIG_INT: case JS_TAG_SHORT_BIG_INT: return "bigint";
    case JS_TAG_BOOL: return "boolean";
    case JS_TAG_SYMBOL: return "symbol";
    case JS_TAG_NULL: return "null";
    case JS_TAG_OBJECT: break;
    default: return "undefined";
    }
    thing = JS_VALUE_GET_OBJ(value);
    if (tk_is_function(thing)) {
        JSFunctionBytecode *code = thing->u.func.function_bytecode;
        return code->source && !strncmp(code->source, "class", 5) ? "class" : "function";
    }
    switch (thing->class_id) {
    case JS_CLASS_C_FUNCTION: case JS_CLASS_BOUND_FUNCTION: case JS_CLASS_C_FUNCTION_DATA: return "function";
    case JS_CLASS_ARRAY: return "array";
    case JS_CLASS_MAP: return "map";
    case JS_CLASS_SET: return "set";
    case JS_CLASS_DATE: return "date";
    case JS_CLASS_REGEXP: return "regexp";
    case JS_CLASS_ERROR: return "error";
    case JS_CLASS_PROMISE: return "promise";
    case JS_CLASS_PROXY: return "proxy";
    case JS_CLASS_GENERATOR: case JS_CLASS_ASYNC_GENERATOR: return "generator";
    case JS_CLASS_ARRAY_BUFFER: return "buffer";
    default: return is_typed_array(thing->class_id) ? "typed array" : "object";
    }
}

/* At most TK_PREVIEW bytes; the host mends a character that was cut. */
static void tk_out_cut(const char *text, size_t length)
{
    tk_out_text(text, length > TK_PREVIEW ? TK_PREVIEW : length);
}

static void tk_preview_keys(JSObject *thing)
{
    char line[TK_PREVIEW + 1] = "{";
    size_t used = 1;
    JSShapeProperty *prs = get_shape_prop(thing->shape);
    int i, shown = 0;

    for (i = 0; i < thing->shape->prop_count && used < TK_PREVIEW - 4; i++, prs++) {
        const char *key;
        if (prs->atom == JS_ATOM_NULL)
            continue;
        key = JS_AtomToCString(tk.ctx, prs->atom);
        used += snprintf(line + used, sizeof line - used, shown++ ? ", %s" : "%s", key ? key : "?");
        if (used > TK_PREVIEW)
            used = TK_PREVIEW;
        JS_FreeCString(tk.ctx, key);
    }
    if (used < TK_PREVIEW)
        line[used++] = '}';
    tk_out_cut(line, used);
}

static void tk_preview(JSValueConst value)
{
    char line[TK_PREVIEW];
    JSObject *thing;

    if (!JS_IsObject(value)) {
        if (JS_IsSymbol(value) || JS_IsUninitialized(value))
            tk_out_cut("", 0);
        else {
            size_t length;
            const char *text = JS_ToCStringLen(tk.ctx, &length, value);
            tk_out_cut(text ? text : "", text ? length : 0);
            JS_FreeCString(tk.ctx, text);
        }
        return;
    }
    thing = JS_VALUE_GET_OBJ(value);
    if (tk_is_function(thing)) {
        JSFunctionBytecode *code = thing->u.func.function_bytecode;
        tk_out_cut(code->source ? code->source : "", code->source ? code->source_len : 0);
    } else if (thing->fast_array) {
        tk_out_cut(line, snprintf(line, sizeof line, "%u items", thing->u.array.count));
    } else if (thing->class_id == JS_CLASS_MAP || thing->class_id == JS_CLASS_SET) {
        tk_out_cut(line, snprintf(line, sizeof line, "%u entries", thing->u.map_state->record_count));
    } else
        tk_preview_keys(thing);
}

/* Name, kind, preview, size of the next global, its digest with the host. */
static void tk_out_global(JSAtom name, JSValueConst value)
{
    size_t length;
    const char *text = JS_AtomToCStringLen(tk.ctx, &length, name);

    tk_out_text(text ? text : "", text ? length : 0);
    JS_FreeCString(tk.ctx, text);
    tk_out_text(tk_kind_of(value), strlen(tk_kind_of(value)));
    tk_preview(value);
    tk_out_u64(tk_digest(value));
}

static int tk_is_base_name(JSAtom atom)
{
    uint32_t i;
    for (i = 0; i < tk.base_count; i++)
        if (tk.base_names[i] == atom)
            return 1;
    return 0;
}

/* The global at `index`, first those of `let`, `const` and `class`, then those of the global object. 1, 0 when it is none,
   -1 at the end. */
TK_EXPORT("tk_global") int32_t tk_global(uint32_t index)
{
    JSObject *lexical = JS_VALUE_GET_OBJ(tk.ctx->global_var_obj), *global = JS_VALUE_GET_OBJ(tk.ctx->global_obj);
    JSObject *from = lexical;
    JSShapeProperty *prs;
    JSProperty *pr;

    tk_out_clear();
    if (index >= lexical->shape->prop_count) {
        from = global;
        index -= lexical->shape->prop_count;
        if (index >= global->shape->prop_count)
            return -1;
    }
    prs = get_shape_prop(from->shape) + index;
    pr = &from->prop[index];
    if (prs->atom == JS_ATOM_NULL || (prs->flags & JS_PROP_TMASK) == JS_PROP_AUTOINIT)
        return 0;
    if (from == global && (tk_is_base_name(prs->atom) || find_own_property1(lexical, prs->atom)))
        return 0;
    switch (prs->flags & JS_PROP_TMASK) {
    case JS_PROP_VARREF:
        tk_out_global(prs->atom, *pr->u.var_ref->pvalue);
        break;
    case JS_PROP_GETSET:
        tk_out_global(prs->atom, pr->u.getset.getter ? JS_MKPTR(JS_TAG_OBJECT, pr->u.getset.getter) : JS_UNDEFINED);
        break;
    default:
        tk_out_global(prs->atom, pr->u.value);
    }
    return 1;
}

#endif
