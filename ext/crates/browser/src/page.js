// Queries a document from an isolated world, where the page's own scripts cannot change the result.
// `query_document` in page.rs replaces `QUERY` by a JSON object.
((query) => {
	try {
		let root = document;
		const frames = () => [...document.querySelectorAll('iframe, frame')];
		let frame = null;
		if (query.frame) {
			frame = document.querySelector(query.frame);
			if (!frame) return { error: 'no element matches the frame selector', count: 0, visible: 0 };
		}
		if (query.frameUrl) {
			frame = frames().find((one) => {
				try { return String(one.contentWindow.location.href).includes(query.frameUrl); } catch (e) { return String(one.src).includes(query.frameUrl); }
			});
			if (!frame) return { error: 'no frame has a URL that contains the text after frame-url:', count: 0, visible: 0 };
		}
		if (frame) {
			root = frame.contentDocument;
			if (!root) return { error: 'the frame has another origin than the page, so it cannot be searched', count: 0, visible: 0 };
		}
		const found = {
			url: String(root.location ? root.location.href : '').slice(0, 4000),
			title: String(root.title).slice(0, 1000),
			count: 0,
			visible: 0,
		};
		if (query.selector === null || query.selector === undefined) return found;
		const all = root.querySelectorAll(query.selector);
		const shows = (one) => {
			const box = one.getBoundingClientRect();
			return box.width > 0 && box.height > 0 && one.checkVisibility({ visibilityProperty: true, opacityProperty: true });
		};
		found.count = all.length;
		let first = null;
		for (let at = 0; at < all.length && at < 5000; at++) {
			if (shows(all[at])) {
				found.visible++;
				first = first || all[at];
			}
		}
		const one = all[0];
		if (one) {
			found.text = String(one.value !== undefined && ['INPUT', 'TEXTAREA', 'SELECT'].includes(one.tagName) ? one.value : one.innerText || one.textContent || '').slice(0, 20000);
			if (query.attribute) {
				const value = one.getAttribute(query.attribute);
				found.attribute = value === null ? null : value.slice(0, 4000);
			}
		}
		const shown = first || one;
		if (shown) {
			found.disabled = shown.matches(':disabled');
			found.checked = shown.checked === undefined ? shown.getAttribute('aria-checked') === 'true' : Boolean(shown.checked);
		}
		if (query.act && !first) return found;
		if (query.act) {
			first.scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' });
			const box = first.getBoundingClientRect();
			const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
			const hit = root.elementFromPoint(x, y);
			found.covered = !(hit && (hit === first || first.contains(hit) || hit.contains(first) || (first.labels && [...first.labels].some((label) => label.contains(hit)))));
			let [dx, dy] = [0, 0];
			if (frame) {
				frame.scrollIntoView({ block: 'center', behavior: 'instant' });
				const outer = frame.getBoundingClientRect();
				[dx, dy] = [outer.left + frame.clientLeft, outer.top + frame.clientTop];
			}
			found.x = x + dx;
			found.y = y + dy;
		}
		if (query.act === 'focus') {
			first.focus();
			found.focused = root.activeElement === first || first.contains(root.activeElement);
			if (query.selectAll) {
				if (first.select) first.select();
				else root.getSelection().selectAllChildren(first);
			}
		}
		if (query.act === 'select') {
			const wanted = [...(first.options || [])].find((option) => option.value === query.value || option.label === query.value);
			if (!wanted) return { ...found, error: 'it has no option with this value or label' };
			first.value = wanted.value;
			for (const kind of ['input', 'change']) first.dispatchEvent(new Event(kind, { bubbles: true }));
		}
		if (query.act === 'scroll') first.scrollBy(query.x, query.y);
		return found;
	} catch (error) {
		return { error: String(error && error.message || error).slice(0, 500), count: 0, visible: 0 };
	}
})(QUERY)
