/**
 * Turns any thrown value into a message with a code and a hint.
 */
import { i18n } from './i18n';

/** An error as the page shows it. */
export interface Failure {
	readonly code: string;
	readonly message: string;
	readonly hint?: string;
}

/** An error of the page itself. */
export class PageError extends Error implements Failure {
	constructor(
		readonly code: string,
		message: string,
		readonly hint?: string
	) {
		super( message );
	}
}

/** Returns code, message and hint of anything that was thrown. */
export function failure( thrown: unknown ): Failure {
	const source = ( null !== thrown && 'object' === typeof thrown ? thrown : {} ) as { code?: unknown; message?: unknown; hint?: unknown };
	const code = 'string' === typeof source.code && source.code ? source.code : 'wp_codebox_browser_page_failed';
	const message = 'string' === typeof source.message && source.message ? source.message : 'string' === typeof thrown && thrown ? thrown : i18n.__( 'An unknown error occurred.', 'codebox' );
	const hint = 'string' === typeof source.hint && source.hint ? source.hint : advice( code );
	return { code, message, ...( hint ? { hint } : {} ) };
}

/** Returns what a person can do about an error that brings no hint of its own. */
function advice( code: string ): string {
	switch ( code ) {
		case 'wp_codebox_browser_no_service_worker':
			return i18n.__( 'Open this page over https, outside of a private window, in a current browser.', 'codebox' );
		case 'wp_codebox_browser_no_decompression':
			return i18n.__( 'Update the browser: it cannot decompress data (DecompressionStream).', 'codebox' );
		case 'wp_codebox_browser_storage_denied':
			return i18n.__( 'Allow this site to store data in the browser, then reload the page.', 'codebox' );
		case 'wp_codebox_browser_storage_full':
			return i18n.__( 'Delete data of websites in the settings of the browser, then reload the page.', 'codebox' );
		case 'wp_codebox_browser_asset_missing':
		case 'wp_codebox_browser_asset_hash_mismatch':
			return i18n.__( 'Ask an administrator to reinstall the files that browser sessions need.', 'codebox' );
		case 'wp_codebox_browser_boot_timeout':
			return i18n.__( 'Reload the page. Close other pages first when the machine is busy.', 'codebox' );
		case 'wp_codebox_browser_session_expired':
		case 'wp_codebox_browser_session_unknown':
			return i18n.__( 'Open a new browser session from the page of the plugin, theme or bundle.', 'codebox' );
		case 'rest_cookie_invalid_nonce':
		case 'rest_not_logged_in':
			return i18n.__( 'Your login expired. Log in in another tab, then try again here.', 'codebox' );
		case 'wp_codebox_browser_page_failed':
			return i18n.__( 'Reload the page. Edits that were saved come back.', 'codebox' );
		default:
			return '';
	}
}
