/**
 * Texts of the page, through WordPress' `wp.i18n` when the page has it.
 *
 * Calls are written `i18n.__( … )`: the bundler keeps names of members, so `wp i18n make-pot` finds the texts in the
 * built file.
 */

interface Translator {
	__( text: string, domain: string ): string;
	_n( single: string, plural: string, count: number, domain: string ): string;
	sprintf( format: string, ...values: Array< string | number > ): string;
}

declare global {
	interface Window {
		wp?: { i18n?: Translator };
	}
}

/** Replaces `%s`, `%d`, `%1$s` and `%%`. */
function sprintf( format: string, ...values: Array< string | number > ): string {
	let next = 0;
	return format.replace( /%(?:(\d+)\$)?([sd%])/g, ( _match, position: string | undefined, kind: string ) => {
		if ( '%' === kind ) {
			return '%';
		}
		return String( values[ position ? Number( position ) - 1 : next++ ] ?? '' );
	} );
}

const english: Translator = {
	__: ( text ) => text,
	_n: ( single, plural, count ) => ( 1 === count ? single : plural ),
	sprintf,
};

function translator(): Translator {
	return globalThis.window?.wp?.i18n ?? english;
}

/** The functions of `wp.i18n`. */
export const i18n: Translator = {
	__: ( text, domain ) => translator().__( text, domain ),
	_n: ( single, plural, count, domain ) => translator()._n( single, plural, count, domain ),
	sprintf: ( format, ...values ) => translator().sprintf( format, ...values ),
};
