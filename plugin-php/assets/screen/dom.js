/**
 * Elements, messages and dialogs. Nothing on this screen is made from a string of markup.
 */
( function ( codebox, wp ) {
	'use strict';

	const { __, sprintf } = wp.i18n;
	const { text } = codebox;
	let last = 0;

	/**
	 * Makes an element.
	 *
	 * @param {string} name     Tag.
	 * @param {Object} settings Attributes; `on` holds listeners. Null and false leave an attribute out.
	 * @param {...*}   content  Nodes or text; null is left out. Data goes through text.node() first.
	 */
	function el( name, settings = {}, ...content ) {
		const element = document.createElement( name );
		for ( const [ key, value ] of Object.entries( settings ) ) {
			if ( 'on' === key ) {
				for ( const [ event, listener ] of Object.entries( value ) ) {
					element.addEventListener( event, listener );
				}
			} else if ( null !== value && undefined !== value && false !== value ) {
				element.setAttribute( key, true === value ? '' : String( value ) );
			}
		}
		element.append( ...content.flat().filter( ( part ) => null !== part && undefined !== part && false !== part ) );
		return element;
	}

	/** An id no other element has. */
	function id( what ) {
		last += 1;
		return 'wp-codebox-' + what + '-' + last;
	}

	/** Data as text, in an element of its own so that its direction cannot reach out. */
	function data( value, kind = 'output' ) {
		return el( 'bdi', { class: 'wp-codebox-data' }, text.node( value, kind ) );
	}

	/** A path, a digest, a command: to be read character by character. */
	function code( value ) {
		return el( 'code', { class: 'wp-codebox-code', dir: 'ltr' }, text.node( value, 'exact' ) );
	}

	/** A point in time. */
	function time( timestamp ) {
		const known = ! Number.isNaN( Date.parse( timestamp ) );
		return el( 'time', known ? { datetime: timestamp, title: new Date( timestamp ).toLocaleString( document.documentElement.lang || 'en' ) } : {}, text.ago( timestamp ) );
	}

	/** A button. */
	function button( label, press, settings = {} ) {
		return el( 'button', { type: 'button', class: 'button', ...settings, on: { click: press } }, label );
	}

	/** A word with a colour that only repeats what the word says. */
	function badge( kind, label ) {
		return el( 'span', { class: 'wp-codebox-badge wp-codebox-badge-' + kind }, label );
	}

	/** Names and values. Rows without a value are left out. */
	function facts( rows ) {
		const list = el( 'dl', { class: 'wp-codebox-facts' } );
		for ( const [ name, value ] of rows ) {
			if ( null !== value && undefined !== value && '' !== value ) {
				list.append( el( 'div', {}, el( 'dt', {}, name ), el( 'dd', {}, value ) ) );
			}
		}
		return list;
	}

	/** A message of core's looks. */
	function notice( kind, ...content ) {
		return el( 'div', { class: 'notice inline notice-' + kind }, ...content );
	}

	/**
	 * An error: what is wrong, what to do, and the code to search for.
	 *
	 * @param {Object}       error  As api.call() throws it.
	 * @param {string|null}  after  A sentence that follows, for instance that nothing was changed.
	 */
	function failure( error, after = null ) {
		const hints = Array.isArray( error.hints ) ? error.hints : [];
		return el(
			'div',
			{ class: 'notice inline notice-error wp-codebox-error', role: 'alert' },
			el( 'p', {}, data( error.message ) ),
			hints.length ? el( 'ul', { class: 'ul-disc' }, hints.map( ( hint ) => el( 'li', {}, data( hint ) ) ) ) : null,
			after ? el( 'p', {}, after ) : null,
			el( 'p', { class: 'wp-codebox-error-code' }, __( 'Code:', 'codebox' ), ' ', code( error.code ) )
		);
	}

	let polite = null;

	/** Where announce() speaks; made once, empty, before anything is said. */
	function announcer() {
		polite = el( 'div', { class: 'screen-reader-text', role: 'status', 'aria-live': 'polite' } );
		return polite;
	}

	/** Says something to whoever cannot see the screen change. */
	function announce( sentence ) {
		if ( polite ) {
			polite.textContent = text.flat( sentence );
		}
	}

	/**
	 * Asks something. The dialog is modal, Escape and the second button close it, and the focus
	 * goes back to where it was.
	 *
	 * @param {Object}   settings
	 * @param {string}   settings.title   The question.
	 * @param {Array}    settings.content Nodes.
	 * @param {string}   settings.confirm Label of the button that does it.
	 * @param {boolean}  settings.danger  Whether it cannot be undone.
	 * @param {Function} settings.act     Does it; may answer a promise. The dialog closes when it is done
	 *                                    and shows the error when it is thrown.
	 * @param {Function} settings.after   Sentence that follows an error, or null.
	 */
	function ask( settings ) {
		const opener = document.activeElement;
		const heading = id( 'title' );
		const problem = el( 'div', {} );
		const close = button( __( 'Back', 'codebox' ), () => dialog.close() );
		const act = el( 'button', { type: 'submit', class: 'button button-primary' + ( settings.danger ? ' wp-codebox-danger' : '' ) }, settings.confirm );
		let done = false;
		const form = el(
			'form',
			{
				method: 'dialog',
				on: {
					submit: async ( event ) => {
						event.preventDefault();
						problem.replaceChildren();
						act.disabled = true;
						form.setAttribute( 'aria-busy', 'true' );
						try {
							await settings.act( form );
							done = true;
							dialog.close();
						} catch ( error ) {
							problem.replaceChildren( failure( error, settings.after ? settings.after( error ) : null ) );
							act.disabled = false;
							close.focus();
						}
						form.removeAttribute( 'aria-busy' );
					},
				},
			},
			el( 'h2', { id: heading, tabindex: -1 }, settings.title ),
			...settings.content,
			problem,
			el( 'div', { class: 'wp-codebox-buttons' }, act, close )
		);
		const dialog = el( 'dialog', { class: 'wp-codebox-dialog', 'aria-labelledby': heading }, form );
		dialog.addEventListener( 'close', () => {
			dialog.remove();
			if ( ! done && opener instanceof HTMLElement && opener.isConnected ) {
				opener.focus();
			}
			if ( done && settings.done ) {
				settings.done();
			}
		} );
		document.getElementById( 'wp-codebox-screen' ).append( dialog );
		dialog.showModal();
		dialog.querySelector( 'h2' ).focus();
		return dialog;
	}

	/**
	 * A table whose cells know their column, so that it can be read on a narrow screen too. There
	 * its parts are blocks; the roles say what they still are.
	 */
	function table( caption, columns, rows ) {
		const head = columns.map( ( column ) => el( 'th', { scope: 'col', role: 'columnheader' }, column ) );
		const body = rows.map( ( cells ) =>
			el(
				'tr',
				{ role: 'row' },
				cells.map( ( cell, index ) => el( 0 === index ? 'th' : 'td', { scope: 0 === index ? 'row' : null, role: 0 === index ? 'rowheader' : 'cell', 'data-column': columns[ index ] }, el( 'div', {}, cell ) ) )
			)
		);
		return el(
			'table',
			{ class: 'widefat striped wp-codebox-table', role: 'table' },
			el( 'caption', { class: 'screen-reader-text' }, caption ),
			el( 'thead', { role: 'rowgroup' }, el( 'tr', { role: 'row' }, head ) ),
			el( 'tbody', { role: 'rowgroup' }, body )
		);
	}

	/** What stands where something is being loaded. */
	function waiting() {
		return el( 'p', { class: 'wp-codebox-waiting' }, el( 'span', { class: 'spinner is-active', 'aria-hidden': 'true' } ), __( 'Loading…', 'codebox' ) );
	}

	/** Outcomes and states: kind of badge and word. */
	function state( word ) {
		const words = {
			running: [ 'live', __( 'running', 'codebox' ) ],
			ended: [ 'plain', __( 'ended', 'codebox' ) ],
			succeeded: [ 'good', __( 'succeeded', 'codebox' ) ],
			no_op: [ 'plain', __( 'nothing changed', 'codebox' ) ],
			partial: [ 'warn', __( 'partial', 'codebox' ) ],
			blocked: [ 'warn', __( 'blocked', 'codebox' ) ],
			denied: [ 'bad', __( 'denied', 'codebox' ) ],
			failed: [ 'bad', __( 'failed', 'codebox' ) ],
			timed_out: [ 'bad', __( 'timed out', 'codebox' ) ],
			cancelled: [ 'warn', __( 'cancelled', 'codebox' ) ],
			passed: [ 'good', __( 'passed', 'codebox' ) ],
			skipped: [ 'plain', __( 'skipped', 'codebox' ) ],
		};
		const [ kind, label ] = Object.hasOwn( words, word ) ? words[ word ] : [ 'plain', text.flat( word ) ];
		return badge( kind, label );
	}

	/** "3 added, 1 removed" for eyes and ears. */
	function counts( added, removed ) {
		return el(
			'span',
			{ class: 'wp-codebox-counts' },
			el( 'span', { 'aria-hidden': 'true' }, el( 'span', { class: 'wp-codebox-added' }, '+' + text.number( added ) ), ' ', el( 'span', { class: 'wp-codebox-removed' }, '−' + text.number( removed ) ) ),
			/* translators: 1: number of lines, 2: number of lines. */
			el( 'span', { class: 'screen-reader-text' }, sprintf( __( '%1$s lines added, %2$s lines removed', 'codebox' ), text.number( added ), text.number( removed ) ) )
		);
	}

	codebox.dom = { el, id, data, code, time, button, badge, facts, notice, failure, announcer, announce, ask, table, waiting, state, counts };
} )( window.wpCodebox, window.wp );
