/**
 * Routes the URL fragment to a view. Leaving a view aborts its requests; late responses are dropped.
 */
( function ( codebox, wp ) {
	'use strict';

	const { __ } = wp.i18n;
	const { api, runs, task, bundles, history } = codebox;
	const { el, failure, waiting, button, announcer } = codebox.dom;

	const root = document.getElementById( 'wp-codebox-screen' );
	if ( ! root ) {
		return;
	}
	const may = new Set( ( root.dataset.may || '' ).split( ' ' ) );
	/** Address of the settings page; '' for a user who may not change the settings. */
	const settings = root.dataset.settings || '';
	/** Address that opens a bundle in a browser sandbox; '' for a user who may not. */
	const sandbox = root.dataset.sandbox || '';
	const place = el( 'div', { class: 'wp-codebox-view' } );
	const name = document.title;
	let current = null;

	/** Returns the navigation links that the user may use: fragment, label, and the view that marks the link as current. */
	function links() {
		return [
			[ '#/runs', __( 'Runs', 'codebox' ), 'runs', api.has( 'list-runs' ) ],
			[ '#/bundles', __( 'Bundles', 'codebox' ), 'bundles', may.has( 'review' ) && api.has( 'list-artifacts' ) ],
			[ '#/history', __( 'History', 'codebox' ), 'history', may.has( 'review' ) && api.has( 'list-artifact-history' ) ],
			[ '#/new', __( 'New task', 'codebox' ), 'new', may.has( 'run' ) && api.has( 'run-agent-task' ) ],
		].filter( ( link ) => link[ 3 ] );
	}

	const bar = el( 'nav', { class: 'nav-tab-wrapper', 'aria-label': __( 'Codebox', 'codebox' ) } );

	/** Returns the function that creates the view of a URL fragment; null for an unknown fragment. */
	function find( words ) {
		const [ area, reference, page ] = words;
		if ( 'bundles' === area && 'page' === reference ) {
			return ( context ) => bundles.list( context, page );
		}
		const views = {
			runs: ( context ) => ( reference ? runs.one( context, reference ) : runs.list( context ) ),
			bundles: ( context ) => ( reference ? bundles.one( context, reference ) : bundles.list( context ) ),
			history: ( context ) => history.list( context, reference ),
			new: task.form,
		};
		return Object.hasOwn( views, area ) ? views[ area ] : null;
	}

	/** Splits the URL fragment into its segments; an invalid fragment gives one empty segment. */
	function words() {
		try {
			return window.location.hash.replace( /^#\/?/, '' ).split( '/' ).map( decodeURIComponent );
		} catch ( thrown ) {
			return [ '' ];
		}
	}

	async function show( first ) {
		if ( current ) {
			current.abort();
		}
		const mine = new AbortController();
		current = mine;
		const offered = links();
		const parts = words();
		const area = parts[ 0 ] || ( offered.length ? offered[ 0 ][ 2 ] : 'runs' );
		bar.replaceChildren(
			...offered.map( ( [ href, label, which ] ) =>
				el( 'a', { href, class: 'nav-tab' + ( which === area ? ' nav-tab-active' : '' ), 'aria-current': which === area ? 'page' : null }, label )
			)
		);
		for ( const dialog of root.querySelectorAll( 'dialog[open]' ) ) {
			dialog.close();
		}
		place.replaceChildren( waiting() );
		let view;
		try {
			const make = find( [ area, ...parts.slice( 1 ) ] );
			view = make
				? await make( { signal: mine.signal, may, settings, sandbox } )
				: { title: __( 'There is no such view', 'codebox' ), content: [ el( 'p', {}, el( 'a', { href: '#/runs' }, __( 'Go to the runs', 'codebox' ) ) ) ] };
		} catch ( thrown ) {
			if ( mine.signal.aborted ) {
				return;
			}
			view = { title: __( 'This cannot be shown', 'codebox' ), content: [ failure( thrown.code ? thrown : api.problem( thrown ) ), button( __( 'Try again', 'codebox' ), () => show( false ) ) ] };
		}
		if ( mine.signal.aborted ) {
			return;
		}
		const heading = el( 'h2', { tabindex: -1 }, view.heading || view.title );
		place.replaceChildren( heading, ...view.content.filter( Boolean ) );
		document.title = codebox.text.own( view.title ) + ' ‹ ' + name;
		if ( ! first ) {
			heading.focus();
		}
	}

	async function start() {
		root.replaceChildren( bar, announcer(), place );
		place.replaceChildren( waiting() );
		try {
			await api.discover();
		} catch ( thrown ) {
			place.replaceChildren( failure( thrown ), button( __( 'Try again', 'codebox' ), start ) );
			return;
		}
		window.addEventListener( 'hashchange', () => show( false ) );
		show( true );
	}

	start();
} )( window.wpCodebox, window.wp );
