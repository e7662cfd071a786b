// What the pages are written with: preact, its hooks, and htm's templates, which escape all that is put into them.
import { cloneElement, Fragment, h, render } from './lib/preact.mjs';
import htm from './lib/htm.mjs';

export { useCallback, useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from './lib/hooks.mjs';
export { cloneElement, Fragment, h, render };
export const html = htm.bind(h);
