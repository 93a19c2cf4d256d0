/**
 * Calls abilities over REST as the logged-in user. The screen accesses the site only through this module.
 */
( function ( codebox, wp ) {
	'use strict';

	const { __, sprintf } = wp.i18n;
	const root = '/wp-abilities/v1/abilities';
	let known = null;

	/** Error with code, message, status and hints, for every kind of failed request. */
	class ApiError extends Error {
		constructor( code, message, status, hints ) {
			super( message );
			this.code = code;
			this.status = status;
			this.hints = hints;
		}
	}

	/** Converts an exception of wp.apiFetch to an ApiError. */
	function problem( thrown ) {
		if ( thrown instanceof ApiError ) {
			return thrown;
		}
		const data = thrown && 'object' === typeof thrown.data && thrown.data ? thrown.data : {};
		const hints = Array.isArray( data.hints ) ? data.hints.filter( ( hint ) => 'string' === typeof hint ) : [];
		const code = thrown && thrown.code ? String( thrown.code ) : 'unknown';
		const message = thrown && thrown.message ? String( thrown.message ) : __( 'The site returned an error without a message; look in its PHP error log.', 'codebox' );
		return new ApiError( code, message, Number( data.status ) || 0, hints );
	}

	/** Loads the names of the site's abilities and the HTTP method that runs each. */
	async function discover() {
		const found = new Map();
		try {
			for ( let page = 1; page < 20; page++ ) {
				const rows = await wp.apiFetch( { path: wp.url.addQueryArgs( root, { category: 'wp-codebox', per_page: 100, page, _fields: 'name,meta' } ) } );
				for ( const row of rows ) {
					const notes = ( row.meta && row.meta.annotations ) || {};
					found.set( row.name, notes.readonly ? 'GET' : notes.destructive && notes.idempotent ? 'DELETE' : 'POST' );
				}
				if ( rows.length < 100 ) {
					break;
				}
			}
		} catch ( thrown ) {
			throw problem( thrown );
		}
		known = found;
	}

	/** Returns whether the site offers an ability. */
	function has( name ) {
		return null !== known && known.has( 'wp-codebox/' + name );
	}

	/**
	 * Runs an ability.
	 *
	 * @param {string} name   Ability name without `wp-codebox/`.
	 * @param {Object} input  Ability input.
	 * @param {Object} signal AbortSignal of the request, or nothing.
	 */
	async function call( name, input, signal ) {
		const method = known.get( 'wp-codebox/' + name );
		if ( ! method ) {
			throw new ApiError(
				'rest_ability_not_found',
				/* translators: %s: name of an ability. */
				sprintf( __( 'This site does not offer the ability %s.', 'codebox' ), 'wp-codebox/' + name ),
				404,
				[ __( 'Update the plugin Codebox, and check that no other plugin removes the ability.', 'codebox' ) ]
			);
		}
		const path = root + '/wp-codebox/' + name + '/run';
		try {
			return 'POST' === method
				? await wp.apiFetch( { path, method, data: { input }, signal } )
				: await wp.apiFetch( { path: wp.url.addQueryArgs( path, { input } ), method, signal } );
		} catch ( thrown ) {
			if ( thrown && 'AbortError' === thrown.name ) {
				throw thrown;
			}
			throw problem( thrown );
		}
	}

	codebox.api = { discover, has, call, problem };
} )( window.wpCodebox, window.wp );
