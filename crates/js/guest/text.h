/* A value as text: a result as JSON or as a person would have it printed, an error as name, message and stack.
   Invariant: this runs code of the program (toJSON, getters, traps); whatever that does, it ends in some text. */
#ifndef TK_TEXT_H
#define TK_TEXT_H

enum { TK_WAITING, TK_JSON, TK_INSPECTED, TK_UNDEFINED, TK_THREW };

static void tk_forget_exception(void)
{
    JS_FreeValue(tk.ctx, JS_GetException(tk.ctx));
}

/* The text of a value that is about to be freed; `otherwise` where it has none. */
static void tk_out_value(JSValue value, const char *otherwise)
{
    size_t length;
    const char *text = JS_IsException(value) ? NULL : JS_ToCStringLen(tk.ctx, &length, value);
    if (text) {
        tk_out_text(text, length);
        JS_FreeCString(tk.ctx, text);
    } else {
        tk_forget_exception();
        tk_out_text(otherwise, strlen(otherwise));
    }
    JS_FreeValue(tk.ctx, value);
}

/* Returns the text that `__host.inspect` of the prelude makes of a value. */
static JSValue tk_inspect(JSValueConst value)
{
    JSValue text, inspect = JS_GetPropertyStr(tk.ctx, tk.host, "inspect");
    if (JS_IsFunction(tk.ctx, inspect)) {
        text = JS_Call(tk.ctx, inspect, JS_UNDEFINED, 1, &value);
        if (JS_IsException(text)) {
            tk_forget_exception();
            text = JS_NewString(tk.ctx, "[a value that cannot be shown]");
        }
    } else {
        text = JS_ToString(tk.ctx, value);
    }
    JS_FreeValue(tk.ctx, inspect);
    return text;
}

/* Whether JSON would say what it is. JSON of a Map is `{}`, of NaN `null`: worse than no JSON. */
static int tk_json_tells(JSValueConst value)
{
    if (JS_IsObject(value)) {
        switch (JS_VALUE_GET_OBJ(value)->class_id) {
        case JS_CLASS_OBJECT:
        case JS_CLASS_ARRAY:
        case JS_CLASS_NUMBER:
        case JS_CLASS_STRING:
        case JS_CLASS_BOOLEAN:
        case JS_CLASS_DATE:
        case JS_CLASS_ARGUMENTS:
        case JS_CLASS_MAPPED_ARGUMENTS:
        case JS_CLASS_PROXY:
            return !JS_IsFunction(tk.ctx, value);
        default:
            return 0;
        }
    }
    if (JS_VALUE_GET_NORM_TAG(value) == JS_TAG_FLOAT64)
        return isfinite(JS_VALUE_GET_FLOAT64(value));
    return !JS_IsSymbol(value) && !JS_IsBigInt(value);
}

static int32_t tk_out_result(JSValueConst value)
{
    JSValue json;
    if (JS_IsUndefined(value))
        return TK_UNDEFINED;
    if (tk_json_tells(value)) {
        json = JS_JSONStringify(tk.ctx, value, JS_UNDEFINED, JS_UNDEFINED);
        if (JS_IsString(json)) {
            tk_out_value(json, "null");
            return TK_JSON;
        }
        if (JS_IsException(json))
            tk_forget_exception();
        JS_FreeValue(tk.ctx, json);
    }
    tk_out_value(tk_inspect(value), "[a value that cannot be shown]");
    return TK_INSPECTED;
}

/* Name, message and stack. */
static void tk_out_thrown(JSValueConst value)
{
    if (JS_IsError(value)) {
        JSValue stack = JS_GetPropertyStr(tk.ctx, value, "stack");
        tk_out_value(JS_GetPropertyStr(tk.ctx, value, "name"), "Error");
        tk_out_value(JS_GetPropertyStr(tk.ctx, value, "message"), "");
        if (JS_IsString(stack))
            tk_out_value(stack, "");
        else {
            if (JS_IsException(stack))
                tk_forget_exception();
            JS_FreeValue(tk.ctx, stack);
            tk_out_text("", 0);
        }
    } else {
        tk_out_text("Uncaught", 8);
        tk_out_value(tk_inspect(value), "[a value that cannot be shown]");
        tk_out_text("", 0);
    }
}

#endif
