/**
 * State and history of a bundle and the history of all bundles, from the audit log of the site.
 */
( function ( codebox, wp ) {
	'use strict';

	const { __, sprintf } = wp.i18n;
	const { text, api } = codebox;
	const { el, data, code, time, badge, table } = codebox.dom;

	/** Number of files that a row shows without a click. */
	const SHOWN = 3;

	/** Returns the badge of a state; a dash when the site does not know it. */
	function state( word ) {
		const words = {
			open: [ 'plain', __( 'open', 'codebox' ) ],
			'applied-in-part': [ 'warn', __( 'applied in part', 'codebox' ) ],
			applied: [ 'good', __( 'applied', 'codebox' ) ],
			'rolled-back': [ 'plain', __( 'rolled back', 'codebox' ) ],
			rejected: [ 'bad', __( 'rejected', 'codebox' ) ],
			discarded: [ 'bad', __( 'discarded', 'codebox' ) ],
		};
		return Object.hasOwn( words, word ) ? badge( ...words[ word ] ) : '—';
	}

	/** Returns badge kind and label of one row: what happened. */
	function event( row ) {
		const good = 'success' === row.status;
		const count = ( row.files || [] ).length;
		if ( 'started' === row.status ) {
			return 'rollback' === row.event ? [ 'warn', __( 'taking back began, no end was recorded', 'codebox' ) ] : [ 'warn', __( 'began, no end was recorded', 'codebox' ) ];
		}
		const reviews = { approve: [ 'good', __( 'approved', 'codebox' ) ], reject: [ 'bad', __( 'rejected', 'codebox' ) ], 'request-changes': [ 'warn', __( 'changes requested', 'codebox' ) ] };
		if ( 'review' === row.event ) {
			return good && Object.hasOwn( reviews, row.action ) ? reviews[ row.action ] : [ 'bad', __( 'the decision failed', 'codebox' ) ];
		}
		const words = {
			apply: [ [ 'good', __( 'applied', 'codebox' ) ], [ 'bad', __( 'the apply failed', 'codebox' ) ] ],
			rollback: [ [ 'plain', __( 'taken back', 'codebox' ) ], count ? [ 'warn', __( 'taken back in part', 'codebox' ) ] : [ 'bad', __( 'taking back failed', 'codebox' ) ] ],
			'stage-apply': [ [ 'plain', __( 'staged', 'codebox' ) ], [ 'bad', __( 'staging failed', 'codebox' ) ] ],
			discard: [ [ 'bad', __( 'discarded', 'codebox' ) ], [ 'bad', __( 'discarding failed', 'codebox' ) ] ],
			import: [ [ 'plain', __( 'imported', 'codebox' ) ], [ 'bad', __( 'the import failed', 'codebox' ) ] ],
		};
		return Object.hasOwn( words, row.event ) ? words[ row.event ][ good ? 0 : 1 ] : [ 'plain', text.flat( row.event ) ];
	}

	function who( row ) {
		const { kind, login } = row.who || {};
		const known = {
			operator: __( 'operator at the shell', 'codebox' ),
			recovery: __( 'Codebox, after an interruption', 'codebox' ),
			none: 'rollback' === row.event ? __( 'link sent by mail', 'codebox' ) : __( 'a caller who was not logged in', 'codebox' ),
		};
		const name = login ? data( login ) : Object.hasOwn( known, kind ) ? known[ kind ] : data( kind );
		const approver = 'object' === typeof row.approver ? JSON.stringify( row.approver ) : row.approver;
		/* translators: %s: name that the caller gave. */
		return row.approver ? el( 'span', {}, name, ' ', data( sprintf( __( '(for %s)', 'codebox' ), approver ) ) ) : name;
	}

	function files( row, names ) {
		const paths = Array.isArray( row.files ) ? row.files : [];
		if ( 0 === paths.length ) {
			return '—';
		}
		const list = el( 'ul', { class: 'wp-codebox-plain' }, paths.map( ( path ) => el( 'li', {}, code( names.get( path ) || path ) ) ) );
		return paths.length > SHOWN ? el( 'details', {}, el( 'summary', {}, text.files( paths.length ) ), list ) : list;
	}

	function details( row ) {
		const said = [
			row.message ? el( 'div', {}, data( row.message ) ) : null,
			row.error ? el( 'div', {}, __( 'Code:', 'codebox' ), ' ', code( row.error ) ) : null,
			row.adapter ? el( 'div', {}, __( 'Through', 'codebox' ), ' ', code( row.adapter ) ) : null,
			row.reference ? el( 'div', {}, code( row.reference ) ) : null,
		];
		return said.some( Boolean ) ? el( 'div', {}, said ) : '—';
	}

	/**
	 * Shows the history, newest first.
	 *
	 * @param {Object} answer  Inspection with `history` and `history_complete`.
	 * @param {Array}  entries Changed files; their names are shown relative to the plugin or theme.
	 */
	function section( answer, entries ) {
		const names = new Map( entries.map( ( entry ) => [ entry.path, entry.relativePath ] ) );
		const rows = Array.isArray( answer.history ) ? [ ...answer.history ].reverse() : [];
		const list = table(
			__( 'Decisions about this bundle, and files applied and taken back', 'codebox' ),
			[ __( 'When', 'codebox' ), __( 'What', 'codebox' ), __( 'Who', 'codebox' ), __( 'Files', 'codebox' ), __( 'Details', 'codebox' ) ],
			rows.map( ( row ) => [ time( row.time ), badge( ...event( row ) ), who( row ), files( row, names ), details( row ) ] )
		);
		list.classList.add( 'wp-codebox-history' );
		return [
			el( 'h3', {}, __( 'History', 'codebox' ) ),
			rows.length
				? list
				: el( 'p', {}, __( 'No record of a decision about this bundle was found.', 'codebox' ) ),
			false === answer.history_complete ? el( 'p', {}, __( 'The audit log of this site is long; its older records are not searched.', 'codebox' ) ) : null,
		];
	}

	/** Returns the bundle of a row; a link unless the bundle was discarded later. */
	function bundle( row, gone ) {
		const name = code( text.short( row.artifact_id || row.run_id || '' ) );
		return row.run_id && ! gone.has( row.run_id ) ? el( 'a', { href: '#/bundles/' + encodeURIComponent( row.run_id ) }, name ) : name;
	}

	/** Returns the runs whose bundle was discarded and not imported again later, according to these rows, newest first. */
	function discarded( rows ) {
		const last = new Map();
		for ( const row of rows ) {
			if ( 'success' === row.status && [ 'discard', 'import' ].includes( row.event ) && ! last.has( row.run_id ) ) {
				last.set( row.run_id, row.event );
			}
		}
		return new Set( [ ...last.keys() ].filter( ( run ) => 'discard' === last.get( run ) ) );
	}

	/** Shows what happened to the bundles of this site, newest first. */
	async function list( { signal }, before ) {
		const answer = await api.call( 'list-artifact-history', Number( before ) > 0 ? { before: Number( before ) } : {}, signal );
		const rows = Array.isArray( answer.history ) ? answer.history : [];
		const gone = discarded( rows );
		const entries = table(
			__( 'Decisions, and files applied and taken back', 'codebox' ),
			[ __( 'When', 'codebox' ), __( 'Bundle', 'codebox' ), __( 'What', 'codebox' ), __( 'Who', 'codebox' ), __( 'Files', 'codebox' ), __( 'Details', 'codebox' ) ],
			rows.map( ( row ) => [ time( row.time ), bundle( row, gone ), badge( ...event( row ) ), who( row ), files( row, new Map() ), details( row ) ] )
		);
		entries.classList.add( 'wp-codebox-history' );
		const content = [ rows.length ? entries : el( 'p', {}, __( 'There is no entry.', 'codebox' ) ) ];
		const older = false === answer.complete && answer.before;
		if ( before || older ) {
			content.push(
				el(
					'nav',
					{ class: 'wp-codebox-buttons', 'aria-label': __( 'Pages', 'codebox' ) },
					before ? el( 'a', { class: 'button', href: '#/history' }, __( 'Newest', 'codebox' ) ) : null,
					older ? el( 'a', { class: 'button', href: '#/history/' + encodeURIComponent( answer.before ) }, __( 'Older', 'codebox' ) ) : null
				)
			);
		}
		return { title: __( 'History', 'codebox' ), content };
	}

	codebox.history = { state, section, list };
} )( window.wpCodebox, window.wp );
