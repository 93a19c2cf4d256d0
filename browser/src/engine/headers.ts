/** Headers of the answers that a sandbox may send, and the policy that every answer carries. */

/** Settings of one answer. `site` is the scope's URL with a slash at its end. */
export interface AnswerSettings {
	opaque: boolean;
	coep: boolean;
	site: URL;
}

/** Headers that are passed on. All others of PHP are dropped, such as cookies, reports to other hosts and frame options. */
const passed = new Set( [
	'accept-ranges', 'age', 'allow', 'cache-control', 'content-disposition', 'content-language', 'content-range', 'content-type', 'date', 'etag', 'expires', 'last-modified', 'link', 'location',
	'pragma', 'referrer-policy', 'retry-after', 'vary', 'x-content-type-options', 'x-pingback', 'x-redirect-by', 'x-robots-tag', 'x-xss-protection',
] );

/** Makes the headers of an answer. */
export function answerHeaders( given: Array< [ string, string ] >, settings: AnswerSettings ): Headers {
	const headers = new Headers();
	for ( const [ name, value ] of given ) {
		const lower = name.toLowerCase();
		if ( 'content-security-policy' === lower ) {
			const rest = withoutFraming( value );
			if ( '' !== rest ) {
				headers.append( 'content-security-policy', rest );
			}
		} else if ( passed.has( lower ) || lower.startsWith( 'x-wp-' ) ) {
			headers.append( lower, value );
		}
	}
	// Several policies all apply, so a policy of the sandbox cannot loosen this one.
	headers.append( 'content-security-policy', policy( settings ) );
	if ( settings.coep ) {
		headers.set( 'cross-origin-embedder-policy', 'credentialless' );
	}
	headers.set( 'cross-origin-resource-policy', 'cross-origin' );
	return headers;
}

/** The policy: no other host, no form to another place, and in opaque mode no origin and no requests by script. */
export function policy( { opaque, site }: AnswerSettings ): string {
	const local = `${ site.origin } data: blob:`;
	const rules = [
		`default-src ${ local } 'unsafe-inline' 'unsafe-eval'`,
		`form-action ${ site.href }`,
		`base-uri ${ site.href }`,
		"object-src 'none'",
	];
	if ( opaque ) {
		// Frames get their documents from the remote page: their own navigation would reach the real server.
		rules.push( 'connect-src data: blob:', 'frame-src data: blob:', 'sandbox allow-scripts allow-forms' );
	}
	return rules.join( '; ' );
}

function withoutFraming( value: string ): string {
	return value.split( ',' ).map( ( one ) => one.split( ';' ).map( ( rule ) => rule.trim() ).filter( ( rule ) => '' !== rule && ! /^(frame-ancestors|sandbox|report-uri|report-to|upgrade-insecure-requests)\b/i.test( rule ) ).join( '; ' ) ).filter( ( one ) => '' !== one ).join( ', ' );
}
