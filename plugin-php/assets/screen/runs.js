/**
 * Views of the run list and of one run with its output.
 */
( function ( codebox, wp ) {
	'use strict';

	const { __, sprintf } = wp.i18n;
	const { text, api } = codebox;
	const { el, data, code, time, button, notice, failure, facts, table, waiting, state, announce, ask } = codebox.dom;

	/** Polling interval in milliseconds, initial and maximum. */
	const SOON = 500;
	const LATE = 5000;
	/** Events per request; few, because one event may hold a hundred kilobytes. */
	const PAGE = 50;
	/** Number of consecutive failed requests after which polling stops. */
	const MAX_FAILURES = 6;

	/** Waits for the given time; while the page is hidden, longer, until it is visible again. */
	function pause( milliseconds, signal ) {
		return new Promise( ( resolve, reject ) => {
			const wake = () => {
				if ( ! document.hidden ) {
					settle( resolve );
				}
			};
			const timer = setTimeout( wake, milliseconds );
			const stop = () => settle( () => reject( new DOMException( 'left', 'AbortError' ) ) );
			const settle = ( then ) => {
				clearTimeout( timer );
				document.removeEventListener( 'visibilitychange', wake );
				signal.removeEventListener( 'abort', stop );
				then();
			};
			document.addEventListener( 'visibilitychange', wake );
			signal.addEventListener( 'abort', stop );
			if ( signal.aborted ) {
				stop();
			}
		} );
	}

	const left = ( thrown ) => thrown && 'AbortError' === thrown.name;

	/** Returns the URL fragment that opens the view of a run. */
	const address = ( run ) => '#/runs/' + encodeURIComponent( run.run_id );

	function cells( run ) {
		const goal = run.goal ? data( run.goal ) : code( run.run_id );
		return [
			el( 'a', { href: address( run ), class: 'row-title' }, goal ),
			el( 'span', {}, state( run.status ), ' ', run.outcome ? state( run.outcome ) : null ),
			time( run.created_at ),
			run.bundle_id ? el( 'a', { href: '#/bundles/' + encodeURIComponent( run.run_id ) }, text.short( run.bundle_id ) ) : '—',
		];
	}

	/** Returns the runs sorted: active ones first, then newest first. */
	function order( runs ) {
		return [ ...runs ].sort( ( a, b ) => ( 'running' === b.status ) - ( 'running' === a.status ) || String( b.created_at ).localeCompare( String( a.created_at ) ) );
	}

	/** Shows the list; it refreshes while a run is active. */
	async function list( { signal } ) {
		const place = el( 'div', {}, waiting() );
		let seen = '';
		const load = async () => {
			const answer = await api.call( 'list-runs', { per_page: 50 }, signal );
			const runs = order( Array.isArray( answer.runs ) ? answer.runs : [] );
			const now = JSON.stringify( runs );
			if ( now !== seen ) {
				const focused = place.contains( document.activeElement ) ? document.activeElement.getAttribute( 'href' ) : null;
				place.replaceChildren(
					runs.length
						? table( __( 'Runs of this site', 'codebox' ), [ __( 'Goal', 'codebox' ), __( 'State', 'codebox' ), __( 'Started', 'codebox' ), __( 'Bundle', 'codebox' ) ], runs.map( cells ) )
						: el( 'p', {}, __( 'No task was run yet.', 'codebox' ) ),
					/* translators: 1: number of runs shown, 2: number of all runs. */
					Number( answer.total ) > runs.length ? el( 'p', {}, sprintf( __( 'The newest %1$s of %2$s runs.', 'codebox' ), text.number( runs.length ), text.number( answer.total ) ) ) : ''
				);
				if ( focused ) {
					[ ...place.querySelectorAll( 'a' ) ].find( ( link ) => link.getAttribute( 'href' ) === focused )?.focus();
				}
				seen = now;
			}
			return runs.some( ( run ) => 'running' === run.status );
		};
		const watch = async () => {
			try {
				while ( await load() ) {
					await pause( LATE, signal );
				}
			} catch ( thrown ) {
				if ( ! left( thrown ) ) {
					place.replaceChildren( failure( thrown ), button( __( 'Try again', 'codebox' ), watch ) );
					seen = '';
				}
			}
		};
		watch();
		return { title: __( 'Runs', 'codebox' ), content: [ place ] };
	}

	/** Returns the built-in agent's model usage; null for every other agent. */
	function model( run ) {
		const used = run.result && run.result.cost && run.result.cost.model;
		if ( ! used ) {
			return null;
		}
		/* translators: 1: number of answers of a model, 2: number of tokens sent, 3: number of tokens received. */
		const tokens = sprintf( __( '%1$s answers, %2$s tokens sent, %3$s received', 'codebox' ), text.number( used.turns ), text.number( used.input_tokens ), text.number( used.output_tokens ) );
		return undefined === used.cost_microusd ? tokens : tokens + ', US$ ' + ( used.cost_microusd / 1e6 ).toFixed( 4 );
	}

	/** Returns the data about a run that the page shows above its output. */
	function summary( run, by ) {
		return facts( [
			[ __( 'State', 'codebox' ), el( 'span', {}, state( run.status ), ' ', run.outcome ? state( run.outcome ) : null ) ],
			[ __( 'Result', 'codebox' ), run.summary ? data( text.summary( run ) ) : null ],
			[ __( 'Started', 'codebox' ), time( run.created_at ) ],
			[ __( 'By', 'codebox' ), by ],
			[ __( 'Model', 'codebox' ), model( run ) ],
			[ __( 'Run', 'codebox' ), code( run.run_id ) ],
		] );
	}

	/** Returns the text that names the user or operator who started the run. */
	function requester( run ) {
		const who = ( run.provenance && run.provenance.requester ) || {};
		if ( 'user' === who.kind ) {
			/* translators: %s: number of the user. */
			return sprintf( __( 'user %s', 'codebox' ), who.id );
		}
		return who.kind ? text.flat( who.kind ) : null;
	}

	const inner = ( answer ) => ( answer && answer.run && 'object' === typeof answer.run && answer.run.run_id ? answer.run : answer );

	/** Shows one run with its live output and, while it is active, a button to cancel it. */
	async function one( { signal }, reference ) {
		const run = inner( await api.call( 'get-run', { run_id: reference }, signal ) );
		const id = run.run_id;
		const head = el( 'div', {}, summary( run, requester( run ) ) );
		const ending = el( 'div', {} );
		const trouble = el( 'div', {} );
		let output = new codebox.Output();
		const actions = el( 'div', { class: 'wp-codebox-buttons' } );

		const ended = ( final ) => {
			head.replaceChildren( summary( final, requester( final ) ) );
			actions.replaceChildren();
			const bundle = Boolean( final.bundle_id );
			ending.replaceChildren(
				notice(
					'succeeded' === final.outcome ? 'success' : 'info',
					el( 'p', {}, el( 'strong', {}, __( 'The run ended.', 'codebox' ) ), ' ', __( 'Nothing on this site was changed by it.', 'codebox' ) ),
					bundle ? el( 'p', {}, el( 'a', { class: 'button button-primary', href: '#/bundles/' + encodeURIComponent( id ) }, __( 'Review the change', 'codebox' ) ) ) : el( 'p', {}, __( 'The run left no bundle.', 'codebox' ) )
				),
				final.error ? failure( { code: final.error.code, message: final.error.message, hints: final.error.hints } ) : ''
			);
		};

		const cancel = button( __( 'Cancel the run', 'codebox' ), () =>
			ask( {
				title: __( 'Cancel this run?', 'codebox' ),
				content: [ el( 'p', {}, __( 'The agent is stopped. What it has changed so far is kept in a bundle.', 'codebox' ) ) ],
				confirm: __( 'Cancel the run', 'codebox' ),
				danger: true,
				act: () => api.call( 'cancel-run', { run_id: id }, signal ),
				done: () => {
					cancel.disabled = true;
					announce( __( 'The run is being cancelled.', 'codebox' ) );
					document.querySelector( '.wp-codebox-view h2' ).focus();
				},
			} )
		);

		const follow = async () => {
			let after = 0;
			let wait = SOON;
			let failures = 0;
			for ( ;; ) {
				let page;
				try {
					page = await api.call( 'list-run-events', { run_id: id, after, per_page: PAGE }, signal );
					failures = 0;
					trouble.replaceChildren();
				} catch ( thrown ) {
					failures += 1;
					if ( left( thrown ) || failures >= MAX_FAILURES || ( thrown.status >= 400 && thrown.status < 500 && 429 !== thrown.status ) ) {
						throw thrown;
					}
					wait = Math.min( LATE, wait * 2 );
					trouble.replaceChildren( el( 'p', {}, __( 'The site does not answer; asking again.', 'codebox' ) ) );
					await pause( wait, signal );
					continue;
				}
				const events = Array.isArray( page.events ) ? page.events : [];
				output.take( events );
				after = Number( page.cursor ) || after;
				if ( page.more ) {
					// Yields after each page of output, so the browser can draw and handle input.
					await pause( 0, signal );
					continue;
				}
				if ( 'running' !== page.status ) {
					return;
				}
				wait = events.length ? SOON : Math.min( LATE, wait * 1.5 );
				await pause( wait, signal );
			}
		};

		const watch = async () => {
			try {
				await follow();
				const final = inner( await api.call( 'get-run', { run_id: id }, signal ) );
				if ( 'running' === run.status ) {
					ended( final );
					/* translators: %s: outcome. */
					announce( sprintf( __( 'The run ended: %s', 'codebox' ), text.summary( final ) || final.outcome || '' ) );
				}
			} catch ( thrown ) {
				if ( ! left( thrown ) ) {
					const again = button( __( 'Try again', 'codebox' ), () => {
						trouble.replaceChildren();
						fresh();
					} );
					trouble.replaceChildren( failure( thrown ), again );
				}
			}
		};
		const log = el( 'div', {}, output.element );
		const fresh = () => {
			output = new codebox.Output();
			log.replaceChildren( output.element );
			watch();
		};

		if ( 'running' === run.status && api.has( 'cancel-run' ) ) {
			actions.append( cancel );
		} else if ( 'running' !== run.status ) {
			ended( run );
		}
		watch();
		return {
			title: run.goal ? text.flat( run.goal ) : __( 'Run', 'codebox' ),
			heading: run.goal ? data( run.goal ) : code( id ),
			content: [ head, actions, ending, el( 'h3', {}, __( 'Output', 'codebox' ) ), log, trouble ],
		};
	}

	codebox.runs = { list, one };
} )( window.wpCodebox, window.wp );
