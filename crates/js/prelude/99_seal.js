// The end of the prelude: the host's own functions leave the global object.
'use strict';
delete globalThis.__host;
