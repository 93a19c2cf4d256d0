/**
 * Elements, messages and dialogs. The screen never creates elements from HTML strings.
 */
( function ( codebox, wp ) {
	'use strict';

	const { __, sprintf } = wp.i18n;
	const { text } = codebox;
	/** Attributes that a browser or a screen reader shows; others, such as the value of a check box, stay exact. */
	const SHOWN = new Set( [ 'title', 'aria-label', 'alt', 'placeholder', 'data-column' ] );
	let last = 0;

	/**
	 * Creates an element.
	 *
	 * @param {string} name     Tag name.
	 * @param {Object} settings Attributes; `on` holds listeners. Null and false leave an attribute out.
	 * @param {...*}   content  Nodes or strings; null is skipped. Untrusted data must pass text.node() first, which keeps
	 *                          its structure; what did not is cleaned by text.own(), like attributes that are shown.
	 */
	function el( name, settings = {}, ...content ) {
		const element = document.createElement( name );
		for ( const [ key, value ] of Object.entries( settings ) ) {
			if ( 'on' === key ) {
				for ( const [ event, listener ] of Object.entries( value ) ) {
					element.addEventListener( event, listener );
				}
			} else if ( null !== value && undefined !== value && false !== value ) {
				element.setAttribute( key, true === value ? '' : SHOWN.has( key ) ? text.own( value ) : String( value ) );
			}
		}
		const given = content.flat().filter( ( part ) => null !== part && undefined !== part && false !== part );
		element.append( ...given.map( ( part ) => ( part instanceof Node ? part : text.own( part ) ) ) );
		return element;
	}

	/** Returns an unused element id. */
	function id( what ) {
		last += 1;
		return 'wp-codebox-' + what + '-' + last;
	}

	/**
	 * Shows data in its own `bdi` element, so its text direction does not affect
	 * other text.
	 */
	function data( value, kind = 'output' ) {
		return el( 'bdi', { class: 'wp-codebox-data' }, text.node( value, kind ) );
	}

	/** Shows a path, digest or command as code, with a mark for every invisible character. */
	function code( value ) {
		return el( 'code', { class: 'wp-codebox-code', dir: 'ltr' }, text.node( value, 'exact' ) );
	}

	/** Creates a `time` element that shows how long ago a point in time was. */
	function time( timestamp ) {
		const known = ! Number.isNaN( Date.parse( timestamp ) );
		return el( 'time', known ? { datetime: timestamp, title: new Date( timestamp ).toLocaleString( document.documentElement.lang || 'en' ) } : {}, text.ago( timestamp ) );
	}

	/** Creates a button. */
	function button( label, press, settings = {} ) {
		return el( 'button', { type: 'button', class: 'button', ...settings, on: { click: press } }, label );
	}

	/** Creates a badge; its colour repeats the meaning of its word. */
	function badge( kind, label ) {
		return el( 'span', { class: 'wp-codebox-badge wp-codebox-badge-' + kind }, label );
	}

	/** Creates a list of names and values. Rows without a value are skipped. */
	function facts( rows ) {
		const list = el( 'dl', { class: 'wp-codebox-facts' } );
		for ( const [ name, value ] of rows ) {
			if ( null !== value && undefined !== value && '' !== value ) {
				list.append( el( 'div', {}, el( 'dt', {}, name ), el( 'dd', {}, value ) ) );
			}
		}
		return list;
	}

	/** Shows a notice in WordPress style. */
	function notice( kind, ...content ) {
		return el( 'div', { class: 'notice inline notice-' + kind }, ...content );
	}

	/**
	 * Shows an error: message, hints, and the code to search for.
	 *
	 * @param {Object}       error  ApiError from api.call().
	 * @param {string|null}  after  Additional sentence, for instance that nothing was changed.
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

	/** Creates the live region for announce(), empty before the first message. */
	function announcer() {
		polite = el( 'div', { class: 'screen-reader-text', role: 'status', 'aria-live': 'polite' } );
		return polite;
	}

	/** Announces a sentence to screen readers. */
	function announce( sentence ) {
		if ( polite ) {
			polite.textContent = text.flat( sentence );
		}
	}

	/**
	 * Opens a confirmation dialog. The dialog is modal; Escape and the second button close it, and the focus
	 * returns to the element that had it.
	 *
	 * @param {Object}   settings
	 * @param {string}   settings.title   Question shown as the title.
	 * @param {Array}    settings.content Nodes of the dialog body.
	 * @param {string}   settings.confirm Label of the confirming button.
	 * @param {boolean}  settings.danger  Whether the action is irreversible.
	 * @param {Function} settings.act     Performs the action; may return a promise. The dialog closes on
	 *                                    success and shows the error on failure.
	 * @param {Element[]} settings.boxes  Check boxes that together unlock the confirming button, or nothing.
	 * @param {Function} settings.after   Additional sentence after an error, or null.
	 */
	function ask( settings ) {
		const opener = document.activeElement;
		const heading = id( 'title' );
		const problem = el( 'div', {} );
		const boxes = settings.boxes || [];
		const close = button( __( 'Back', 'codebox' ), () => dialog.close() );
		const act = el( 'button', { type: 'submit', class: 'button button-primary' + ( settings.danger ? ' wp-codebox-danger' : '' ) }, settings.confirm );
		const unlock = () => {
			act.disabled = boxes.some( ( box ) => ! box.checked );
		};
		for ( const box of boxes ) {
			box.addEventListener( 'change', unlock );
		}
		unlock();
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
							unlock();
							close.focus();
						}
						form.removeAttribute( 'aria-busy' );
					},
				},
			},
			el( 'h2', { id: heading, tabindex: -1 }, settings.title ),
			...settings.content.filter( Boolean ),
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
	 * Creates a table whose cells carry their column name, so it is readable on narrow screens, where CSS
	 * turns cells into blocks; explicit ARIA roles preserve the table semantics.
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

	/** Creates the placeholder shown while data loads. */
	function waiting() {
		return el( 'p', { class: 'wp-codebox-waiting' }, el( 'span', { class: 'spinner is-active', 'aria-hidden': 'true' } ), __( 'Loading…', 'codebox' ) );
	}

	/** Returns badge kind and label of an outcome or status. */
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

	/** Shows added and removed lines, with "3 added, 1 removed" for screen readers. */
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
