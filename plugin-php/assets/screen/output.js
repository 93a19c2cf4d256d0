/**
 * Live output of a run: converts lifecycle events to lines of a log of limited size.
 */
( function ( codebox, wp ) {
	'use strict';

	const { __, sprintf } = wp.i18n;
	const { text } = codebox;
	const { el } = codebox.dom;

	/** Maximum number of lines on the page; older ones are removed. */
	const LINES = 1500;
	/** Maximum number of characters per line. */
	const WIDTH = 2000;
	/** Above this number of new lines at once, screen readers get only their count. */
	const ALOUD = 12;

	/** Log element on the page, with the name and the incomplete last line of each running program. */
	class Output {
		constructor() {
			this.names = new Map();
			this.begun = new Map();
			this.checks = 0;
			this.dropped = 0;
			this.pending = [];
			this.gone = el( 'p', { class: 'wp-codebox-gone', hidden: true } );
			this.lines = el( 'div', { class: 'wp-codebox-log', role: 'log', 'aria-live': 'polite', 'aria-label': __( 'Output of the run', 'codebox' ), tabindex: 0, dir: 'ltr' } );
			this.element = el( 'div', {}, this.gone, this.lines );
		}

		/** Converts a page of events to log lines and adds them to the page at once. */
		take( events ) {
			for ( const event of events ) {
				this.event( event && event.data ? event : { ...event, data: {} } );
			}
			this.draw();
		}

		event( { type, executionId, data } ) {
			const id = String( executionId || '' );
			switch ( type ) {
				case 'runtime.created':
					this.say( __( 'The sandbox is being prepared.', 'codebox' ) );
					break;
				case 'runtime.mounted':
					/* translators: 1: directory, 2: mode, 3: kind of view. */
					this.say( sprintf( __( 'Mounted %1$s (%2$s, %3$s).', 'codebox' ), data.target, data.mode, data.view ) );
					break;
				case 'runtime.observed':
					if ( data.level ) {
						/* translators: 1: isolation level, 2: network posture. */
						this.say( sprintf( __( 'The sandbox is up: isolation %1$s, network %2$s.', 'codebox' ), data.level, 'string' === typeof data.network ? data.network : __( 'limited by rules', 'codebox' ) ) );
					}
					break;
				case 'runtime.command.started':
					this.begin( id, data );
					break;
				case 'runtime.command.output':
					this.print( id, data );
					break;
				case 'runtime.command.finished':
					this.finish( id, data );
					break;
				case 'runtime.artifacts.collected':
					this.say( __( 'The bundle is written.', 'codebox' ) );
					break;
			}
		}

		begin( id, data ) {
			let name = String( data.command || '' );
			if ( 'check' === data.phase || 'check' === name ) {
				this.checks += 1;
				/* translators: %s: number of the check. */
				name = sprintf( __( 'check %s', 'codebox' ), this.checks );
			} else if ( 'agent' === data.phase || 'agent' === name || 'command-agent-run' === name ) {
				name = __( 'agent', 'codebox' );
			}
			this.names.set( id, name );
			/* translators: %s: agent, or which check. */
			this.say( sprintf( __( 'Started: %s.', 'codebox' ), name ) );
		}

		print( id, data ) {
			const stream = 'stderr' === data.stream ? 'stderr' : 'stdout';
			const key = id + ' ' + stream;
			// An agent's preset defines how lines of its protocol are displayed; the bundle contains the
			// original lines.
			const chunk = 'string' === typeof data.shown ? data.shown : 'string' === typeof data.text ? data.text : 'string' === typeof data.base64 ? text.decoded( data.base64 ) : '';
			const lines = ( ( this.begun.get( key ) || '' ) + chunk ).split( '\n' );
			let rest = lines.pop();
			// An agent that never sends a newline must not fill this page.
			if ( rest.length > 8192 ) {
				lines.push( rest );
				rest = '';
			}
			this.begun.set( key, rest );
			for ( const line of lines ) {
				this.line( id, stream, line );
			}
			if ( data.truncated ) {
				this.say( __( 'The output limit is reached; later output is not stored.', 'codebox' ) );
			}
		}

		/** Adds the incomplete last lines of an ended program to the log. */
		flush( id ) {
			for ( const stream of [ 'stdout', 'stderr' ] ) {
				const rest = this.begun.get( id + ' ' + stream );
				if ( rest ) {
					this.line( id, stream, rest );
				}
				this.begun.delete( id + ' ' + stream );
			}
		}

		finish( id, data ) {
			this.flush( id );
			let ended = __( 'no exit status', 'codebox' );
			if ( Number.isInteger( data.exitCode ) ) {
				/* translators: %s: number. */
				ended = sprintf( __( 'exit status %s', 'codebox' ), data.exitCode );
			}
			/* translators: 1: agent, or which check; 2: exit status; 3: time. */
			this.say( sprintf( __( 'Ended: %1$s (%2$s, %3$s).', 'codebox' ), this.names.get( id ) || '', ended, text.duration( Number( data.durationMs ) || 0 ) ) );
		}

		line( id, stream, content ) {
			this.pending.push( { name: this.names.get( id ) || '', stream, content } );
		}

		say( content ) {
			this.pending.push( { name: null, stream: 'note', content } );
		}

		/** Adds the pending lines to the page; of more than LINES lines only the last. */
		draw() {
			const fresh = this.pending;
			this.pending = [];
			if ( 0 === fresh.length ) {
				return;
			}
			const skipped = Math.max( 0, fresh.length - LINES );
			const bottom = this.lines.scrollHeight - this.lines.scrollTop - this.lines.clientHeight < 40;
			this.lines.setAttribute( 'aria-live', fresh.length > ALOUD ? 'off' : 'polite' );
			const rows = fresh.slice( skipped ).map( ( row ) => this.row( row ) );
			this.lines.append( ...rows );
			let excess = this.lines.childElementCount - LINES;
			this.dropped += skipped + Math.max( 0, excess );
			for ( ; excess > 0; excess-- ) {
				this.lines.firstElementChild.remove();
			}
			if ( this.dropped > 0 ) {
				this.gone.hidden = false;
				/* translators: %s: number of lines. */
				this.gone.textContent = sprintf( __( '%s earlier lines are not shown here; the bundle has them.', 'codebox' ), text.number( this.dropped ) );
			}
			if ( fresh.length > ALOUD ) {
				/* translators: %s: number of lines. */
				codebox.dom.announce( sprintf( __( '%s new lines of output.', 'codebox' ), text.number( fresh.length ) ) );
			}
			if ( bottom ) {
				this.lines.scrollTop = this.lines.scrollHeight;
			}
		}

		row( { name, stream, content } ) {
			// Long lines are cut before any further processing.
			const shown = content.length > WIDTH ? content.slice( 0, WIDTH ) : content;
			return el(
				'div',
				{ class: 'wp-codebox-line wp-codebox-' + stream },
				null === name ? null : el( 'span', { class: 'wp-codebox-who' }, text.flat( name ) + ( 'stderr' === stream ? ' ' + __( '(errors)', 'codebox' ) : '' ) ),
				el( 'span', { class: 'wp-codebox-text' }, text.node( shown.replace( /\r$/, '' ), 'output' ) ),
				/* translators: %s: number of characters. */
				content.length > WIDTH ? el( 'span', { class: 'wp-codebox-cut' }, sprintf( __( '%s further characters', 'codebox' ), text.number( content.length - WIDTH ) ) ) : null
			);
		}
	}

	codebox.Output = Output;
} )( window.wpCodebox, window.wp );
