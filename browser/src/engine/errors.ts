/** Conversion between thrown values and the failures that cross windows and workers. */
import { EngineError, type EngineCode, type EngineFailure } from './api.js';

/** Makes data of a thrown value. A value that is not an `EngineError` gets `fallback` as its code. */
export function toFailure( thrown: unknown, fallback: EngineCode ): EngineFailure {
	if ( thrown instanceof EngineError ) {
		return undefined === thrown.hint ? { code: thrown.code, message: thrown.message } : { code: thrown.code, message: thrown.message, hint: thrown.hint };
	}
	return { code: fallback, message: thrown instanceof Error ? thrown.message : String( thrown ) };
}

/** Makes an error of a received failure. */
export function fromFailure( failure: EngineFailure ): EngineError {
	return new EngineError( failure.code, failure.message, failure.hint );
}

/** The error of every call after `destroy()` or after the frame was removed. */
export function closed(): EngineError {
	return new EngineError( 'wp_codebox_browser_closed', 'This browser session is closed.', 'Open the sandbox again.' );
}
